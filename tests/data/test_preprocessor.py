"""Inputs that leave their training range: marked, with one warning."""

import warnings

import numpy as np
import pytest

import revarb
from revarb.data.series import Series
from support import small

U = np.column_stack([np.linspace(0.0, 2.0, 50), np.sin(np.arange(50.0))])
RECORD = Series(U, np.cumsum(U[:, 1]), input_names=["valve", "heat"])


@pytest.fixture(scope="module")
def model():
    return revarb.ARX(lags=2, input_lags=2).fit(RECORD)


def shifted(rows, by):
    u = U.copy()
    u[rows, 0] += by
    return u


def test_the_warning_names_column_rows_and_distance(model):
    u, message = shifted(slice(47, 50), 3.0), r"'valve' leaves its training range, 0 to 2, in 3 of 50 rows, by up to "
    message += r"1.5 times its width: no training data support the model there \(is the unit right\?\)"
    with pytest.warns(UserWarning, match=message):
        path = model.simulate(u)
    np.testing.assert_array_equal(np.argwhere(path.input_extrapolates), [[47, 0], [48, 0], [49, 0]])
    np.testing.assert_array_equal(path.inputs, u)
    assert path.input_names == ("valve", "heat")
    with pytest.warns(UserWarning, match="input 'valve' leaves its training range"):
        path = model.predict(Series(shifted(slice(0, 50), 10.0), RECORD.y, input_names=["valve", "heat"]))
    assert path.input_extrapolates[:, 0].all() and not path.input_extrapolates[:, 1].any()


@pytest.mark.parametrize("by", [0.0, 0.09])  # up to 5 % of the width
def test_inputs_about_the_training_range_cause_no_warning(model, by):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not model.simulate(shifted(slice(49, 50), by)).input_extrapolates.any()


def test_the_range_is_saved_with_a_model(model, tmp_path):
    known = revarb.load(model.save(tmp_path / "m.rgp")).preprocessor.input_range
    np.testing.assert_array_equal(known.low, U.min(axis=0))
    np.testing.assert_array_equal(known.high, U.max(axis=0))
    assert revarb.Mean().fit(small.record(inputs=0)).simulate(steps=20).input_extrapolates is None
