"""Inputs outside of their training range: marked, and said once."""

import warnings

import numpy as np
import pytest

import revarb
from revarb.data.preprocessor import Preprocessor, ValueRange
from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import InputError
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
    message = (
        r"input 'valve' leaves its training range, 0 to 2, in 3 of 50 rows, by up to 1.5 times its width: the band "
        r"does not know what happens there \(is the unit right\?\)"
    )
    with pytest.warns(UserWarning, match=message):
        path = model.simulate(shifted(slice(47, 50), 3.0))
    np.testing.assert_array_equal(np.argwhere(path.outside), [[47, 0], [48, 0], [49, 0]])
    np.testing.assert_array_equal(path.inputs, shifted(slice(47, 50), 3.0))
    assert path.input_names == ("valve", "heat")


@pytest.mark.parametrize("by", [0.0, 0.09])  # up to 5 % of the width
def test_inputs_about_the_training_range_say_nothing(model, by):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not model.simulate(shifted(slice(49, 50), by)).outside.any()


def test_predictions_say_it_too(model):
    with pytest.warns(UserWarning, match="input 'valve' leaves its training range"):
        path = model.predict(Series(shifted(slice(0, 50), 10.0), RECORD.y, input_names=["valve", "heat"]))
    assert path.outside[:, 0].all() and not path.outside[:, 1].any()


def test_the_range_is_saved(model, tmp_path):
    known = revarb.load(model.save(tmp_path / "m.rgp")).preprocessor.input_range
    np.testing.assert_array_equal(known.low, U.min(axis=0))
    np.testing.assert_array_equal(known.high, U.max(axis=0))


def test_a_model_without_inputs_has_nothing_to_leave():
    model = revarb.Mean().fit(small.record(inputs=0))
    assert model.simulate(steps=20).outside is None


@pytest.mark.parametrize("wrong", [([0.0], [0.0]), ([1.0], [0.0]), ([0.0, 0.0], [1.0, 1.0]), ([0.0], [np.inf])])
def test_a_range_that_is_none_is_refused(wrong):
    one = np.ones(1)
    with pytest.raises(InputError, match="the range of its inputs is not one finite interval per input"):
        Preprocessor(
            Standardiser(one, one, one, one), Order(1, 1, 1), ("u",), ("y",), 1.0, ValueRange(*map(np.array, wrong))
        )
