"""The step of a model in plain arrays, run by NumPy, against its own mean-only simulation."""

import numpy as np
import pytest

import revarb
from revarb.errors import InputError
from revarb.models.export.step_model import make_step_model
from support.export_models import SPECS, make_record, simulate_mean
from support.numpy_step import run_cold


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (2, 2)])
def test_the_step_is_that_of_the_simulation(name, inputs, outputs):
    record = make_record(inputs, outputs)
    model = SPECS[name].fit(record)
    expected = simulate_mean(model, record.u)
    np.testing.assert_allclose(run_cold(make_step_model(model), record.u), expected, rtol=1e-9, atol=1e-9)


def test_an_ensemble_is_the_mean_of_its_members():
    record = make_record()
    model = SPECS["one layer"].fit(record, restarts=2, jobs=1)
    expected = simulate_mean(model, record.u)
    np.testing.assert_allclose(run_cold(make_step_model(model), record.u), expected, rtol=1e-9)


def test_what_has_no_step_is_refused():
    with pytest.raises(InputError, match="FittedMean cannot be exported"):
        make_step_model(revarb.Mean().fit(make_record()))
