"""The control experiment: the plant, the controller on known models, estimators, the loop, targets, a quick run."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import revarb
from studies import mpc
from studies.mpc import ARX_MPC, PLANT, RGP_MPC, TIGHTENED, ModelPredictiveControl
from studies.mpc.controller import Controller, ControlSettings
from studies.mpc.estimators import ARXEstimator, PlantEstimator, RGPEstimator, make_plant_step
from studies.mpc.loop import ClosedLoop, Excitation, Scenario, Task, draw_scenario, record_plant, run_loop
from studies.mpc.reactor import ReactorState, _find_rates, advance_reactor, find_rest, run_reactor
from studies.study import Fit, run_fits
from support import small

casadi = pytest.importorskip("casadi")

NOISE = 0.001
EXCITATION = Excitation(150, (85.0, 95.0, 105.0, 110.0), 4, 15)
TASK = Task(97.0, ((0.08, 5), (0.1, 25)), 20, -2.0)
SETTINGS = ControlSettings(10, 85.0, 110.0, 0.13, 0.01, 5.0, 0.1, 100.0)
QUICK_ARX = revarb.ARX(lags=3, input_lags=3, input_delay=0)
QUICK_RGP = small.spec(hidden=1, lags=3, input_lags=3, input_delay=0, inducing=15)
FREE = replace(SETTINGS, lowest=-1e3, highest=1e3, limit=1e3, output_scale=1.0, input_scale=1.0)


@pytest.fixture(scope="module")
def record():
    return record_plant(EXCITATION, NOISE, seed=0)


@pytest.fixture(scope="module")
def linear(record):
    return QUICK_ARX.fit(record)


def lag_step():
    """x⁺ = 0.8 x + 0.2 u, y = x⁺."""
    x, u = casadi.MX.sym("x"), casadi.MX.sym("u")
    following = 0.8 * x + 0.2 * u
    return casadi.Function("step", [x, u], [following, following])


def solve(controller, state=0.0, last=0.0, offset=0.0, target=1.0, limit=1e3):
    return controller.solve(np.array([state]), last, offset, target, np.full(controller.settings.horizon, limit))


def window(record, rows):
    return revarb.Window(record.u[:rows], record.y[:rows], 0.1, record.input_names, record.output_names)


def follow(estimator, record, rows):
    """Predictions of an estimator that is corrected by every measured row."""
    for u, y in zip(record.u[rows, 0], record.y[rows, 0], strict=True):
        yield estimator.predict(u)
        estimator.correct(y)


def test_the_plant_is_that_of_the_literature():
    rest = find_rest(103.41)
    assert rest.concentration == pytest.approx(0.1, abs=5e-5) and rest.temperature == pytest.approx(438.54, abs=0.01)
    # The reaction goes out above 111 L/min.
    assert find_rest(112.0).concentration > 0.9 and find_rest(110.0).concentration == pytest.approx(0.13, abs=1e-3)


@pytest.mark.parametrize("coolant", [85.0, 110.0])
def test_a_sample_is_that_of_a_better_integrator_and_of_casadi(coolant):
    start = find_rest(97.0)

    def rates(t, x):
        return _find_rates(ReactorState(*x), coolant, np.exp)

    exact = solve_ivp(rates, (0.0, 0.1), start, rtol=1e-11, atol=1e-13).y[:, -1]
    found = advance_reactor(start, coolant)
    np.testing.assert_allclose(found, exact, rtol=1e-6)
    following, y = make_plant_step()(np.array(start), coolant)
    np.testing.assert_allclose([*following.full().ravel(), float(y)], [*found, found.concentration], rtol=1e-12)


def test_a_row_has_the_output_after_its_input_has_acted(record):
    quiet = record_plant(EXCITATION, 0.0, seed=0)
    u, rest = quiet.u[:, 0], find_rest(float(np.mean(EXCITATION.levels)))
    assert set(u) == set(EXCITATION.levels)
    assert quiet.y[0, 0] == advance_reactor(rest, float(u[0])).concentration
    np.testing.assert_array_equal(quiet.y[:, 0], run_reactor(rest, u))
    assert (record.y - quiet.y).std() == pytest.approx(NOISE, rel=0.2)
    assert (record.dt, record.input_names, record.output_names) == (0.1, ("coolant",), ("concentration",))


def test_without_limits_it_is_the_least_squares_solution():
    plan = solve(Controller(lag_step(), FREE), state=0.3, last=0.5, offset=0.1)
    n = FREE.horizon
    gains = np.array([[0.2 * 0.8 ** (k - j) if j <= k else 0.0 for j in range(n)] for k in range(n)])
    free = 0.3 * 0.8 ** np.arange(1, n + 1) + 0.1
    moves = np.sqrt(0.1) * (np.eye(n) - np.eye(n, k=-1))
    first = np.sqrt(0.1) * np.array([0.5, *[0.0] * (n - 1)])
    expected = np.linalg.lstsq(np.vstack([gains, moves]), np.concatenate([1.0 - free, first]), rcond=None)[0]
    assert plan.solved
    np.testing.assert_allclose(plan.inputs, expected, atol=1e-4)


def test_inputs_keep_to_their_limits_and_outputs_to_theirs():
    plan = solve(Controller(lag_step(), replace(FREE, lowest=0.0, highest=1.2)))
    assert plan.solved and plan.inputs.max() <= 1.2 and plan.inputs[0] == pytest.approx(1.2, abs=2e-4)
    low = solve(Controller(lag_step(), FREE), limit=0.5)
    outputs = np.convolve(0.2 * 0.8 ** np.arange(10), low.inputs)[:10]
    assert low.solved and max(outputs) == pytest.approx(0.5, abs=1e-3)


def test_where_gauss_and_newton_do_not_converge_the_exact_hessian_does():
    """An output that cannot come near its target: the curvature of the errors is all there is at the solution."""
    x, u = casadi.MX.sym("x"), casadi.MX.sym("u")
    controller = Controller(casadi.Function("step", [x, u], [u, u**2 + 6.0]), replace(FREE, move_weight=1e-3))
    plan = solve(controller, last=2.0, target=0.0)
    quick, exact = (solver.stats() for solver in controller._solvers)
    assert not quick["success"] and exact["success"] and plan.solved
    np.testing.assert_allclose(plan.inputs, 0.0, atol=1e-3)


def test_arx_predicts_one_step_ahead_as_the_model_does(linear, record):
    estimator = ARXEstimator(linear, window(record, 40))
    predicted = list(follow(estimator, record, slice(40, None)))
    np.testing.assert_allclose(predicted, linear.predict(record).mean[40:, 0], rtol=1e-9)
    np.testing.assert_allclose(estimator.state(), linear.step_state(window(record, 150)), atol=1e-9)
    assert (estimator.predict_std(np.full(7, 95.0)) > 0.0).all()


@pytest.mark.slow
def test_the_observer_of_an_rgp_has_the_state_of_its_filter(record):
    learnt = QUICK_RGP.fit(record)
    estimator, after, plan = RGPEstimator(learnt, window(record, 20)), window(record, 60), np.full(10, 100.0)
    list(follow(estimator, record, slice(20, 60)))
    np.testing.assert_allclose(estimator.state(), learnt.step_state(after), atol=1e-6)
    expected = learnt.simulate(plan[:, None], start=learnt.resolve_start(after).state).std[:, 0]
    np.testing.assert_allclose(estimator.predict_std(plan), expected, rtol=1e-6)


def test_the_kalman_filter_finds_the_temperature():
    wrong = ReactorState(find_rest(97.0).concentration, find_rest(97.0).temperature + 1.0)
    estimator, plant, rng = PlantEstimator(wrong, NOISE), find_rest(97.0), np.random.default_rng(0)
    for u in np.repeat([100.0, 95.0, 105.0], 15):
        plant = advance_reactor(plant, u)
        estimator.predict(u)
        estimator.correct(plant.concentration + NOISE * rng.standard_normal())
    assert (np.abs(estimator.state() - np.array(plant)) < [6e-4, 0.4]).all()


def test_the_loop_reaches_its_set_point_and_rejects_the_disturbance():
    task = Task(97.0, ((0.08, 10), (0.1, 90)), 50, -2.0)
    scenario, rest = draw_scenario(task, 2e-4, seed=0), find_rest(97.0)
    loop = run_loop(PlantEstimator(rest, 2e-4), rest, 97.0, scenario, SETTINGS, gain=0.3, tighten=2.0)
    np.testing.assert_allclose(loop.limits, 0.13 - 2.0 * 2e-4)  # lower by two predicted standard deviations
    assert loop.solved == len(scenario.targets)
    for rows in (slice(40, 50), slice(90, 100)):  # before the disturbance, and long after it
        np.testing.assert_allclose(loop.outputs[rows].mean(), 0.1, atol=1e-3)
    assert loop.inputs[95:].mean() - loop.inputs[40:50].mean() == pytest.approx(2.0, abs=0.5)
    drifting = run_loop(PlantEstimator(rest, 2e-4), rest, 97.0, scenario, SETTINGS, gain=0.0)
    assert abs(drifting.outputs[90:].mean() - 0.1) > 2e-3  # without the disturbance estimate there is an offset


def test_scores_of_a_loop():
    outputs = np.array([0.1, 0.14, 0.131, 0.12])
    times = np.array([0.001, 0.002, 0.003, 0.1])
    loop = ClosedLoop(outputs, np.full(4, 100.0), np.full(4, 0.13), times, times, 3)
    scores = mpc.score_loop(loop, Scenario(np.full(4, 0.12), np.zeros(4), np.zeros(4)), 0.13)
    assert (scores["violations"], scores["not_solved"], scores["samples"]) == (2, 1, 4)
    assert scores["largest_violation"] == pytest.approx(0.01)
    assert scores["tracking_rmse"] == pytest.approx(np.sqrt(np.mean((outputs - 0.12) ** 2)))
    assert scores["solve_ms"] == pytest.approx(2.5) and scores["solve_ms_95"] > 80.0


def row(controller, rmse, violations=0, solve_ms=10.0, seed=0):
    return {"controller": controller, "seed": seed, "tracking_rmse": rmse, "violations": violations, "not_solved": 0,
            "largest_violation": 0.001 * violations, "solve_ms": solve_ms, "solve_ms_95": 20.0,
            "observer_ms": 1.0}  # fmt: skip


GOOD = [row(PLANT, 0.007), row(RGP_MPC, 0.0075), row(TIGHTENED, 0.0076), row(ARX_MPC, 0.009, 3)]


@pytest.mark.parametrize(
    ("changed", "met"),
    [
        ({}, "yyyy"),
        ({1: row(RGP_MPC, 0.0095)}, "nnyy"),
        ({1: row(RGP_MPC, 0.0069)}, "nyyy"),
        ({2: row(TIGHTENED, 0.0076, 1)}, "yyny"),
        ({2: row(TIGHTENED, 0.0076, solve_ms=60.0)}, "yyyn"),
    ],
)
def test_targets_are_computed_from_the_rows(changed, met):
    rows = [changed.get(number, each) for number, each in enumerate(GOOD)]
    assert "".join("ny"[target.met] for target in ModelPredictiveControl().targets(rows)) == f"{met}y"


class Quick(ModelPredictiveControl):
    """The study with a quick model."""

    excitation, task, controller = EXCITATION, TASK, SETTINGS

    def fit_models(self, record, seed):
        return QUICK_RGP.fit(record, seed=seed), QUICK_ARX.fit(record)


@pytest.mark.slow
def test_a_quick_study():
    study = Quick(seeds=1)
    rows, drawn = run_fits(study)
    assert [each["controller"] for each in rows] == list(mpc.CONTROLLERS)
    assert all(np.isfinite(each["tracking_rmse"]) and each["not_solved"] == 0 for each in rows)
    figure = study.figures(rows, drawn)["mpc_0"]
    assert len(figure.axes) == 3 and len(study.tables(rows)) == 2
    figure.canvas.draw()


def test_refusals(linear, monkeypatch):
    """A choice that is linear, which has no observer; no casadi, before the fits."""
    study = Quick(seeds=1)
    study.fit_models = lambda record, seed: (linear, linear)
    with pytest.raises(revarb.ComputationError, match="the choice of seed 0 is a FittedARX, not a recurrent GP"):
        study.run_fit(Fit("reactor", "chosen", 0))
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(revarb.InputError, match=r'predictive control needs casadi; pip install "revarb\[casadi\]"'):
        study.run(SimpleNamespace(json=None, page=None, rows=None, pictures=None, only=None), "")
