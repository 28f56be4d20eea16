"""The standard deviation of a CasADi step against `simulate`, which matches moments, from a state known exactly."""

import casadi as ca
import numpy as np
import pytest

import revarb
from revarb.errors import InputError
from revarb.simulation.chain import StartState
from support.export_models import RECIPE, fit_mixed, fit_small, make_record

RGPS = ["one layer", "two layers", "linear part, dead time", "two states"]


def know_exactly(model, window):
    """The state after a window, without uncertainty."""
    state = model.resolve_start(window).state
    return StartState(state.mean, np.zeros_like(state.cov), state.past_u)


@pytest.mark.parametrize("name", RGPS)
@pytest.mark.parametrize("row", [30, 50])
def test_it_is_that_of_one_step_by_moments(name, row):
    record, model = make_record(2, 2), fit_small(name, 2, 2)
    start = know_exactly(model, revarb.Window(record.u[:row], record.y[:row]))
    next_state, y, std = model.to_casadi(with_std=True)(model.step_state(start), record.u[row])
    path = model.simulate(record.u[row : row + 1], start=start)
    np.testing.assert_allclose(np.asarray(std)[:, 0], path.std[0], rtol=0.03)
    for found, expected in zip((next_state, y), model.to_casadi()(model.step_state(start), record.u[row]), strict=True):
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-12)


@pytest.mark.slow
def test_student_t_noise():
    record = make_record()
    spec = revarb.RGP(2, 2, hidden=1, inducing=8, recipe=RECIPE, noise="student-t", calibrate=False)
    model = spec.fit(record)
    start = know_exactly(model, revarb.Window(record.u[:30], record.y[:30]))
    std = model.to_casadi(with_std=True)(model.step_state(start), record.u[30])[2]
    np.testing.assert_allclose(float(std), model.simulate(record.u[30:31], start=start).std[0, 0], rtol=0.03)


def test_of_a_gp_narx_it_is_exact():
    """After measured outputs its states are known: one step ahead nothing is propagated."""
    record, model = make_record(2, 2), fit_small("GP-NARX", 2, 2)
    state = model.step_state(revarb.Window(record.u[:30], record.y[:30]))
    std = model.to_casadi(with_std=True)(state, record.u[30])[2]
    np.testing.assert_allclose(np.asarray(std)[:, 0], model.predict(record).std[30], rtol=1e-8)


def test_an_ensemble_is_a_mixture():
    record, model = make_record(), fit_mixed()
    window = revarb.Window(record.u[:30], record.y[:30])
    starts = tuple(know_exactly(member, window) for member in model.members)
    std = model.to_casadi(with_std=True)(model.step_state(starts), record.u[30])[2]
    np.testing.assert_allclose(float(std), model.simulate(record.u[30:31], start=starts).std[0, 0], rtol=0.03)


def test_it_can_be_differentiated():
    model = fit_small("two states", 2, 2)
    step, start, u0, h = model.to_casadi(with_std=True), model.step_state(), model.scaling.u_mean, 1e-5
    assert step.name_out() == ["next_state", "y", "std"]

    def std(u):
        return np.asarray(step(start, u)[2])[:, 0]

    u = ca.MX.sym("u", 2)
    slope = ca.Function("slope", [u], [ca.jacobian(step(start, u)[2], u)])
    expected = np.stack([(std(u0 + h * e) - std(u0 - h * e)) / (2 * h) for e in np.eye(2)], axis=1)
    np.testing.assert_allclose(np.asarray(slope(u0)), expected, rtol=1e-4, atol=1e-6)


def test_a_file_of_it_is_loaded_again(tmp_path):
    model = fit_small("two layers")
    [file] = model.export(tmp_path / "m.casadi", with_std=True)
    args = model.step_state("continue"), 3.0
    for found, expected in zip(ca.Function.load(str(file))(*args), model.to_casadi(with_std=True)(*args), strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_refusals():
    with pytest.raises(InputError, match="a FittedARX has no variance of its own; leave with_std out"):
        fit_small("ARX").to_casadi(with_std=True)
    with pytest.raises(InputError, match="with_std is of one step from a known state; leave horizon out"):
        fit_small("one layer").to_casadi(horizon=3, with_std=True)
