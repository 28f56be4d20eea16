"""The standard deviation of an ONNX step against that of CasADi, which is checked against `simulate`."""

import numpy as np
import onnxruntime
import pytest

import revarb
from revarb.errors import InputError
from support.export_models import fit_mixed, fit_small, make_record

WITH_VARIANCE = ["one layer", "two layers", "linear part, dead time", "feedthrough", "two states", "GP-NARX"]


def check(model, state, u, folder):
    [file] = model.export(folder / "m.onnx", with_std=True)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    found = session.run(["next_state", "y", "std"], {"state": state, "u": u})
    expected = [np.asarray(each)[:, 0] for each in model.to_casadi(with_std=True)(state, u)]
    for ours, theirs in zip(found[:2], expected, strict=False):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-6)  # a small difference of large numbers


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_VARIANCE)
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (2, 2)])
def test_it_is_that_of_casadi(name, inputs, outputs, tmp_path):
    record, model = make_record(inputs, outputs), fit_small(name, inputs, outputs)
    state = model.step_state(revarb.Window(record.u[:30], record.y[:30]))
    check(model, state, record.u[30], tmp_path)


def test_an_ensemble_is_a_mixture(tmp_path):
    check(fit_mixed(), fit_mixed().step_state(), make_record().u[30], tmp_path)


def test_a_model_without_variance_is_refused(tmp_path):
    with pytest.raises(InputError, match="a FittedARX has no variance of its own; leave with_std out"):
        fit_small("ARX").export(tmp_path / "m.onnx", with_std=True)
    assert list(tmp_path.iterdir()) == []
