"""State vectors of exported steps: a run of the step from them is the mean-only simulation from that start."""

import numpy as np
import pytest

import revarb
from revarb.errors import InputError
from revarb.models.export.step_model import make_step_model, run_cold
from support.export_models import SPECS, fit_mixed, fit_small, make_record, simulate_mean
from support.numpy_step import step_vector

ARX_LIKE = ("ARX", "GP-NARX", "MLP-NARX")


def run(model, state, u):
    """The step, one row after the other."""
    step, rows = make_step_model(model), []
    for now in u:
        state, y = step_vector(step, state, now)
        rows.append(y)
    return np.stack(rows)


@pytest.mark.parametrize("name", SPECS)
def test_a_cold_run(name):
    record, model = make_record(2, 2), fit_small(name, 2, 2)
    step = make_step_model(model)
    np.testing.assert_array_equal(model.step_state(), step.make_cold_state())
    assert model.step_state().shape == (step.state_size,)
    found = run_cold(step, lambda state, u: step_vector(step, state, u), record.u)
    np.testing.assert_allclose(found, simulate_mean(model, record.u), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in SPECS if name not in ("GP-NARX", "MLP-NARX")])
@pytest.mark.parametrize("kind", ["window", "continue"])
def test_a_measured_start_is_that_of_simulate(name, kind):
    record, model = make_record(2, 2), fit_small(name, 2, 2)
    start = revarb.Window(record.u[:30], record.y[:30]) if kind == "window" else kind
    found = run(model, model.step_state(start), record.u[30:])
    expected = model.simulate(record.u[30:], model.methods[0], start=start).mean
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ARX_LIKE)
def test_a_narx_model_takes_the_last_measured_outputs(name):
    """The next output is then that of `predict`, one step ahead; a missing output is replaced by its prediction."""
    record, model = make_record(2, 2), fit_small(name, 2, 2)
    y = record.y.copy()
    y[28, 1] = np.nan
    window = revarb.Window(record.u[:30], y[:30])
    state = model.step_state(window)
    raw = state[: 2 * model.order.lags].reshape(-1, 2) * model.scaling.y_std + model.scaling.y_mean
    np.testing.assert_allclose(raw[0], record.y[29], rtol=1e-12)
    assert np.isfinite(raw).all()
    if name != "GP-NARX":  # whose mean in `predict` counts the uncertainty of the missing output
        expected = model.predict(revarb.Series(record.u, np.concatenate([y[:30], record.y[30:]]))).mean[30]
        np.testing.assert_allclose(run(model, state, record.u[30:31])[0], expected, rtol=1e-9)


@pytest.mark.parametrize("start", ["cold", "window", "continue"])
def test_an_ensemble_whose_members_look_back_differently_far(start):
    record, model = make_record(), fit_mixed()
    assert len({member.order.reach for member in model.members}) == 2
    step = make_step_model(model)
    if start == "cold":
        found = run_cold(step, lambda state, u: step_vector(step, state, u), record.u)
        expected = simulate_mean(model, record.u)
    else:
        where = revarb.Window(record.u[:30], record.y[:30]) if start == "window" else start
        found = run(model, model.step_state(where), record.u[30:])
        expected = model.simulate(record.u[30:], "mean", start=where).mean
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_states_of_an_ensemble():
    model = fit_mixed()
    np.testing.assert_array_equal(model.step_state(model.final_states[-1]), model.step_state("continue"))
    with pytest.raises(InputError, match="start is one state, but the model has 2 members"):
        model.step_state(model.members[0].final_states[0])
    with pytest.raises(InputError, match=r"start has 1 state\(s\), but the model 2 member\(s\)"):
        model.step_state(model.final_states[0][:1])


def test_a_system_without_inputs():
    y = np.sin(0.3 * np.arange(60.0))
    model = revarb.ARX(lags=2).fit(revarb.Series(None, y))
    state = model.step_state(revarb.Window(None, y[:30]))
    assert state.shape == (2,)
    expected = model.simulate(steps=5, start=revarb.Window(None, y[:30])).mean
    np.testing.assert_allclose(run(model, state, np.empty((5, 0))), expected, rtol=1e-9)


def test_refusals():
    with pytest.raises(InputError, match="a FittedGPNARX does not keep how its training records ended"):
        fit_small("GP-NARX").step_state("continue")
    with pytest.raises(InputError, match="start must be 'cold', 'continue', a revarb"):
        fit_small("ARX").step_state("warm")
    with pytest.raises(InputError, match="FittedMean cannot be exported"):
        revarb.Mean().fit(make_record()).step_state()
