"""What CasADi functions have beyond the other formats: names, derivatives, generated code."""

import subprocess

import casadi as ca
import numpy as np
import pytest

from revarb.export.step_model import make_step_model
from support.export_models import fit_small, make_record
from support.numpy_step import step_vector


def test_names_and_sizes():
    model = fit_small("one layer", 2, 2)
    step, run = model.to_casadi(), model.to_casadi(horizon=40)
    assert (step.name(), step.name_in(), step.name_out()) == ("step", ["state", "u"], ["next_state", "y"])
    assert (run.name(), run.name_in(), run.name_out()) == ("run", ["state", "u"], ["final_state", "y"])
    assert run.size_in("u") == (2, 40) and run.size_out("y") == (2, 40)


@pytest.mark.parametrize("name", ["two states", "linear part, dead time", "MLP-NARX"])
def test_derivatives_are_those_of_finite_differences(name):
    model = fit_small(name, 2, 2)
    step_model, step, size = make_step_model(model.step_parts()), model.to_casadi(), len(model.step_state())
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


@pytest.mark.parametrize("with_std", [False, True])
def test_a_file_of_it_is_loaded_again(with_std, tmp_path):
    model = fit_small("two layers")
    [file] = model.export(tmp_path / "m.casadi", with_std=with_std)
    args = model.step_state("continue"), 3.0
    expected = model.to_casadi(with_std=with_std)(*args)
    for found, each in zip(ca.Function.load(str(file))(*args), expected, strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(each))


def test_the_std_can_be_differentiated():
    model = fit_small("two states", 2, 2)
    step, start, u0, h = model.to_casadi(with_std=True), model.step_state(), model.scaling.u_mean, 1e-5
    assert step.name_out() == ["next_state", "y", "std"]

    def std(u):
        return np.asarray(step(start, u)[2])[:, 0]

    u = ca.MX.sym("u", 2)
    slope = ca.Function("slope", [u], [ca.jacobian(step(start, u)[2], u)])
    expected = np.stack([(std(u0 + h * e) - std(u0 - h * e)) / (2 * h) for e in np.eye(2)], axis=1)
    np.testing.assert_allclose(np.asarray(slope(u0)), expected, rtol=1e-4, atol=1e-6)
