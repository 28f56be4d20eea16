"""The CasADi step and run against the model's own mean-only simulation; derivatives, generated code and files."""

import subprocess
import sys

import casadi as ca
import numpy as np
import pytest

import revarb
from revarb.errors import InputError
from revarb.models.export.casadi_function import make_casadi, serialise
from revarb.models.export.step_model import make_step_model, run_cold
from support.export_models import RECIPE, SPECS, fit_mixed, fit_small, make_record, simulate_mean
from support.numpy_step import step_vector

WITH_STARTS = [name for name in SPECS if name not in ("GP-NARX", "MLP-NARX")]


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (2, 2)])
def test_a_cold_run_is_that_of_simulate(name, inputs, outputs):
    record, model = make_record(inputs, outputs), fit_small(name, inputs, outputs)
    found = run_cold(make_step_model(model), model.to_casadi(), record.u)
    np.testing.assert_allclose(found, simulate_mean(model, record.u), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", WITH_STARTS)
def test_a_horizon_after_a_measured_window_is_that_of_simulate(name):
    record, model = make_record(2, 2), fit_small(name, 2, 2)
    window = revarb.Window(record.u[:30], record.y[:30])
    run = model.to_casadi(horizon=40)
    assert (run.name(), run.name_in(), run.name_out()) == ("run", ["state", "u"], ["final_state", "y"])
    assert run.size_in("u") == (2, 40) and run.size_out("y") == (2, 40)
    final_state, y = run(model.step_state(window), record.u[30:].T)
    expected = model.simulate(record.u[30:], model.methods[0], start=window).mean
    np.testing.assert_allclose(np.asarray(y).T, expected, rtol=1e-9, atol=1e-9)
    past = record.u[-model.order.reach :].ravel()
    np.testing.assert_allclose(np.asarray(final_state)[-len(past) :, 0], past)


def test_the_step_is_named():
    step = fit_small("one layer").to_casadi()
    assert (step.name(), step.name_in(), step.name_out()) == ("step", ["state", "u"], ["next_state", "y"])


@pytest.mark.parametrize("start", ["cold", "continue"])
def test_an_ensemble_whose_members_look_back_differently_far(start):
    record, model = make_record(), fit_mixed()
    if start == "cold":
        found = run_cold(make_step_model(model), model.to_casadi(), record.u)
        expected = simulate_mean(model, record.u)
    else:
        found = np.asarray(model.to_casadi(horizon=70)(model.step_state(start), record.u.T)[1]).T
        expected = model.simulate(record.u, "mean", start=start).mean
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_a_system_without_inputs():
    y = np.sin(0.3 * np.arange(60.0))
    model = revarb.ARX(lags=2).fit(revarb.Series(None, y))
    window = revarb.Window(None, y[:30])
    found = model.to_casadi(horizon=5)(model.step_state(window), np.empty((0, 5)))[1]
    np.testing.assert_allclose(np.asarray(found).T, model.simulate(steps=5, start=window).mean, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("order", [(1, 1, 1), (1, 1, 0), (2, 1, 0)])
def test_windows_of_one_sample(order):
    record = make_record()
    model = revarb.RGP(*order, hidden=2, inducing=5, recipe=RECIPE, calibrate=False).fit(record)
    found = run_cold(make_step_model(model), model.to_casadi(), record.u)
    np.testing.assert_allclose(found, simulate_mean(model, record.u), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SPECS)
def test_derivatives_are_those_of_finite_differences(name):
    model = fit_small(name, 2, 2)
    step_model, step, size = make_step_model(model), model.to_casadi(), make_step_model(model).state_size
    x = np.concatenate([model.step_state() + np.random.default_rng(0).normal(size=size), model.scaling.u_mean + 0.5])

    def both(x):
        return np.concatenate(step_vector(step_model, x[:size], x[size:]))

    h = 1e-6
    expected = np.stack([(both(x + h * e) - both(x - h * e)) / (2 * h) for e in np.eye(len(x))], axis=1)
    state, u = ca.MX.sym("state", size), ca.MX.sym("u", 2)
    jacobian = ca.Function("jacobian", [state, u], [ca.jacobian(ca.vertcat(*step(state, u)), ca.vertcat(state, u))])
    np.testing.assert_allclose(np.asarray(jacobian(x[:size], x[size:])), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["two states", "linear part, dead time", "MLP-NARX"])
def test_generated_code_gives_the_same(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # CasADi writes to the current folder
    model = fit_small(name, 2, 2)
    run = model.to_casadi(horizon=20)
    run.generate("run.c")
    subprocess.run(["cc", "-O1", "-fPIC", "-shared", "run.c", "-o", "run.so", "-lm"], check=True)
    args = model.step_state(), make_record(2, 2).u[:20].T
    for found, expected in zip(ca.external("run", "./run.so")(*args), run(*args), strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-12)


def test_a_file_of_it_is_loaded_again(tmp_path):
    model = fit_small("two layers")
    (tmp_path / "model.casadi").write_bytes(serialise(model.to_casadi()))
    step = ca.Function.load(str(tmp_path / "model.casadi"))
    args = model.step_state("continue"), 3.0
    for found, expected in zip(step(*args), model.to_casadi()(*args), strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_refusals(monkeypatch):
    with pytest.raises(InputError, match="FittedMean cannot be exported"):
        revarb.Mean().fit(make_record()).to_casadi()
    with pytest.raises(InputError, match="horizon must be a whole number of at least 1, received 0"):
        fit_small("ARX").to_casadi(horizon=0)
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(InputError, match=r'a CasADi function needs casadi; pip install "revarb\[casadi\]"'):
        make_casadi(make_step_model(fit_small("ARX")))
