"""Live runs that observe: states corrected by measured outputs, and predictions from there."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.data.series import Series, Window
from revarb.errors import InputError
from revarb.gp.layer import Linear
from revarb.models import observer
from revarb.models.calibration import Calibration
from revarb.models.live import Live
from revarb.simulation.chain import Chain
from support import small

CALIBRATION = Calibration(0.5, 0.03, edges=(2, 10), factors=(1.1, 1.3, 1.6), stretches=12, error=0.2)
TWO = small.record(samples=60, inputs=2, outputs=2)
NEW = small.record(5, samples=30, inputs=2, outputs=2)


@pytest.fixture(scope="module")
def model():
    return replace(small.spec(latent_dim=2).fit(TWO), calibration=CALIBRATION)


@pytest.fixture(scope="module")
def single():
    return small.spec(hidden=1).fit(small.record())


def run(live, u, y):
    """Steps and corrections over a record: mean and standard deviation of every step before it was measured."""
    steps = []
    for inputs, outputs in zip(u, y, strict=True):
        steps.append(live.step(inputs))
        live.correct(outputs)
    return np.stack([step.mean for step in steps]), np.stack([step.std for step in steps])


# A dense joint Gaussian as the judge ---------------------------------------------------------------------------------


class Dense:
    """All variables of a linear chain as affine functions of independent normal ones: the initial states and noises."""

    def __init__(self):
        self.variances = []

    def draw(self, variance):
        """A new independent variable of zero mean: its constant, and its coefficients."""
        self.variances.append(variance)
        return 0.0, {len(self.variances) - 1: 1.0}

    def combine(self, coefficients, variables, constant, noise):
        """Σ coefficient · variable + constant + noise."""
        total = [self.draw(noise), *variables]
        factors = [1.0, *coefficients]
        value = constant + sum(c * v[0] for c, v in zip(factors, total, strict=True))
        merged = {}
        for c, (_, own) in zip(factors, total, strict=True):
            for number, coefficient in own.items():
                merged[number] = merged.get(number, 0.0) + c * coefficient
        return value, merged

    def moments(self, variables):
        """Mean and covariance of some of the variables."""
        rows = np.zeros((len(variables), len(self.variances)))
        for row, (_, own) in zip(rows, variables, strict=True):
            row[list(own)] = list(own.values())
        return np.array([value for value, _ in variables]), (rows * self.variances) @ rows.T

    def condition(self, variables, measured, values):
        """Mean and covariance of some variables, given the values of others."""
        mean, cov = self.moments([*variables, *measured])
        n = len(variables)
        gain = cov[:n, n:] @ np.linalg.inv(cov[n:, n:])
        return mean[:n] + gain @ (values - mean[n:]), cov[:n, :n] - gain @ cov[n:, :n]


def linear_chain(chain, rng):
    """The chain with a random stable linear part in every layer, and no function beside it."""

    def line(layer):
        coefficients = 0.3 * rng.normal(size=(layer.zeta.shape[1], layer.outputs))
        linear = Linear(coefficients, 0.1 * rng.normal(size=layer.outputs))
        none = np.zeros_like(layer.beta), np.zeros_like(layer.reduction)
        return replace(layer, variance=np.array(1e-14), beta=none[0], reduction=none[1], linear=linear)

    return Chain(tuple(line(layer) for layer in chain.hidden), line(chain.output), chain.lags)


def unroll(chain, u_bar):
    """The states and outputs of every step of a cold run as variables of a dense Gaussian; windows newest first."""
    dense, states, outputs = Dense(), [], []
    windows = [[[dense.draw(1.0) for _ in range(dim)] for _ in range(chain.lags)] for dim in chain.latent_dims]
    for inputs in u_bar:
        below = None
        for h, layer in enumerate(chain.hidden):
            regressors = [*flatten(windows[h]), *flatten(below or [])]
            new = evaluate(dense, layer, regressors, inputs if h == 0 else np.empty(0))
            windows[h] = below = [new, *windows[h][:-1]]
        states.append(flatten(flatten(windows)))
        outputs.append(evaluate(dense, chain.output, flatten(windows[-1]), np.empty(0)))
    return dense, states, outputs


def flatten(lists):
    return [each for one in lists for each in one]


def evaluate(dense, layer, regressors, inputs):
    uncertain, known = np.split(layer.linear.coefficients, [len(regressors)])
    constants = inputs @ known + layer.linear.offset
    return [dense.combine(uncertain[:, d], regressors, constants[d], float(layer.sigma2)) for d in range(layer.outputs)]


def test_corrections_are_those_of_a_dense_gaussian(model):
    """A linear chain: the filter is exact, with two layers, two states each, two outputs and missing entries."""
    rng = np.random.default_rng(0)
    chain = linear_chain(model.trained.chain, rng)
    linear = replace(model, trained=model.trained._replace(chain=chain), calibration=None)
    steps, ahead = 8, 4
    z_u, z_y = rng.uniform(-1, 1, size=(steps + ahead, 2)), rng.normal(size=(steps, 2))
    z_y[2, 0] = z_y[5, 1] = np.nan
    z_y[3] = np.nan
    u, y = z_u * linear.scaling.u_std + linear.scaling.u_mean, linear.scaling.raw_outputs(z_y)
    live = Live(linear)
    mean, std = np.full((steps, 2), np.nan), np.full((steps, 2), np.nan)
    for row in range(steps):
        step = live.step(u[row])
        if step.std is not None:  # from the second step on: the first correction begins to observe
            mean[row], std[row] = step.mean, step.std
        live.correct(y[row])
    path = live.predict(ahead, u[steps:])

    u_bar = np.concatenate([np.zeros((linear.order.reach, 2)), z_u])
    lagged = np.concatenate([u_bar[1:-1], u_bar[:-2]], axis=1)  # input_delay 1, two lags, newest first
    dense, states, outputs = unroll(chain, lagged)
    known = [(row, d) for row in range(steps) for d in range(2) if np.isfinite(z_y[row, d])]
    measured, values = [outputs[row][d] for row, d in known], np.array([z_y[row, d] for row, d in known])
    expected = dense.condition(states[steps - 1], measured, values)
    np.testing.assert_allclose(live.state.mean, expected[0], atol=1e-7)
    np.testing.assert_allclose(live.state.cov, expected[1], atol=1e-7)
    for row in range(1, steps):
        before = [index for index, (when, _) in enumerate(known) if when < row]
        m, c = dense.condition(outputs[row], [measured[index] for index in before], values[before])
        np.testing.assert_allclose(mean[row], linear.scaling.raw_outputs(m), atol=1e-7)
        np.testing.assert_allclose(std[row], linear.scaling.raw_std(np.sqrt(np.diag(c))), atol=1e-7)
    for row in range(ahead):
        m, c = dense.condition(outputs[steps + row], measured, values)
        np.testing.assert_allclose(path.mean[row], linear.scaling.raw_outputs(m), atol=1e-7)
        np.testing.assert_allclose(path.std[row], linear.scaling.raw_std(np.sqrt(np.diag(c))), atol=1e-7)


# The same as the other ways through the library ----------------------------------------------------------------------


@pytest.mark.slow
def test_steps_with_corrections_are_predictions_one_step_ahead(model):
    record = small.with_gaps(NEW, (7, 0), (12, 1), (slice(20, 23), 1))
    mean, std = run(Live(model, observe=True), record.u, record.y)
    expected = model.predict(record, horizon=1)
    np.testing.assert_allclose(mean, expected.mean, rtol=1e-9)
    np.testing.assert_allclose(std, expected.std, rtol=1e-9)


@pytest.mark.slow
def test_predictions_are_those_ahead_along_a_record(model):
    live, ahead = Live(model, observe=True), {k: model.predict(NEW, horizon=k) for k in (1, 4)}
    run(live, NEW.u[:15], NEW.y[:15])
    path = live.predict(4, NEW.u[15:19])
    assert (path.start, path.skip, len(path)) == ("live run, step 15", 0, 4)
    for k, expected in ahead.items():
        np.testing.assert_allclose(path.mean[k - 1], expected.mean[14 + k], rtol=1e-9)
        np.testing.assert_allclose(path.std[k - 1], expected.std[14 + k], rtol=1e-9)


def test_the_state_is_that_after_a_measured_window(model):
    live = Live(model)
    for inputs, outputs in zip(NEW.u, NEW.y, strict=True):
        live.step(inputs)
        live.correct(outputs)
    expected = model.resolve_start(Window(NEW.u, NEW.y)).state
    for name in ("mean", "cov", "past_u"):
        np.testing.assert_allclose(getattr(live.state, name), getattr(expected, name), rtol=1e-9, atol=1e-12)
    path, simulated = live.predict(4, NEW.u[:4]), model.simulate(NEW.u[:4], start=live.state)
    np.testing.assert_allclose(path.mean, simulated.mean, rtol=1e-12)
    np.testing.assert_allclose(path.std, simulated.std, rtol=1e-12)


@pytest.mark.parametrize("start", ["cold", "continue"])
def test_a_run_that_observes_nothing_is_a_free_run_of_the_moments(model, start):
    live, expected = Live(model, start, observe=True), model.simulate(NEW.u, start=start)
    mean, std = run(live, NEW.u, np.full(NEW.y.shape, np.nan))
    np.testing.assert_allclose(mean, expected.mean, rtol=1e-9)
    np.testing.assert_allclose(std, expected.std, rtol=1e-9)


def test_steps_since_a_correction_are_a_prediction(model):
    live = Live(model, observe=True)
    run(live, NEW.u[:10], NEW.y[:10])
    path = live.predict(4, NEW.u[10:14])
    steps = [live.step(inputs) for inputs in NEW.u[10:14]]
    np.testing.assert_allclose([step.mean for step in steps], path.mean, rtol=1e-9)
    np.testing.assert_allclose([step.std for step in steps], path.std, rtol=1e-9)
    again = live.predict(4, NEW.u[14:18])
    np.testing.assert_allclose(again.std[0], live.step(NEW.u[14]).std, rtol=1e-9)


# When a run begins to observe ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_is_mean_only_until_its_first_correction(single):
    record = small.record(3)
    live, free = Live(single), single.simulate(record.u, "mean")
    for row in range(20):
        step = live.step(record.u[row])
        live.correct(np.nan)
        assert step.std is None
        np.testing.assert_allclose(step.mean, free.mean[row], rtol=1e-10)
    live.correct(record.y[19])
    step = live.step(record.u[20])
    assert step.std[0] > 0.0
    assert abs(step.mean[0] - record.y[20, 0]) < abs(free.mean[20, 0] - record.y[20, 0]) + 2 * step.std[0]


def test_a_correction_of_the_first_step_needs_no_argument(model):
    runs = [Live(model), Live(model, observe=True)]
    for live in runs:
        live.step(NEW.u[0])
        live.correct(NEW.y[0])
    np.testing.assert_allclose(runs[0].state.mean, runs[1].state.mean, rtol=1e-12)
    np.testing.assert_allclose(runs[0].state.cov, runs[1].state.cov, rtol=1e-12)


def test_corrections_help(single):
    record = small.record(11, samples=200)
    mean, std = run(Live(single, observe=True), record.u, record.y)
    free = single.simulate(record.u)
    corrected, uncorrected = (np.sqrt(np.mean((path - record.y)[10:] ** 2)) for path in (mean, free.mean))
    assert corrected < uncorrected
    assert (std[10:] <= free.std[10:].max()).all()


def test_reset_forgets_corrections(single):
    record = small.record(3)
    for observe in (True, False):
        live = Live(single, observe=observe)
        first = live.step(record.u[0])
        live.correct(record.y[0] + 1.0)
        live.step(record.u[1])
        live.reset()
        again = live.step(record.u[0])
        np.testing.assert_array_equal(again.mean, first.mean)
        assert (again.std is None) == (not observe)


@pytest.mark.slow
def test_ghosts_restart_at_the_corrected_state(single):
    record = small.record(3)
    live = Live(single, ghosts=300, horizon=1, observe=True)
    for inputs, outputs in zip(record.u, record.y, strict=True):
        step = live.step(inputs)
        live.correct(outputs)
    assert abs(step.ghosts.mean() - step.mean[0]) < 5.0 * step.ghosts.std() / np.sqrt(300) + 0.1 * step.std[0]


@pytest.mark.slow
def test_one_outlier_does_not_throw_a_student_t_model():
    record = small.record(samples=80)
    moved = {}
    for noise in ("gaussian", "student-t"):
        model = small.spec(hidden=1, noise=noise).fit(record)
        live = Live(model, observe=True)
        mean, _ = run(live, record.u[:40], record.y[:40])
        np.testing.assert_allclose(mean, model.predict(record, 1).mean[:40], rtol=1e-8)
        live.step(record.u[40])
        before = live.state.mean
        live.correct(record.y[40] + 5.0)
        moved[noise] = np.abs(live.state.mean - before).max()
    assert moved["student-t"] < 0.2 * moved["gaussian"]


# Inputs --------------------------------------------------------------------------------------------------------------


def test_inputs_can_be_given_after_the_correction(model):
    at_once, later = Live(model, observe=True), Live(model, observe=True)
    for inputs, outputs in zip(NEW.u[:10], NEW.y[:10], strict=True):
        step, same = at_once.step(inputs), later.step()
        np.testing.assert_array_equal(step.mean, same.mean)
        for live in (at_once, later):
            live.correct(outputs)
        later.apply(inputs + 1.0)
        later.apply(inputs)
    np.testing.assert_array_equal(later.state.past_u, at_once.state.past_u)
    np.testing.assert_array_equal(later.predict(4).mean, at_once.predict(4).mean)


def test_the_last_inputs_are_held(model):
    live = Live(model, "continue", observe=True)
    live.step(NEW.u[0])
    held, given = live.predict(4), live.predict(4, np.tile(NEW.u[0], (4, 1)))
    np.testing.assert_allclose(held.mean, given.mean, rtol=1e-12)
    np.testing.assert_allclose(held.inputs, given.inputs, rtol=1e-12)


@pytest.mark.slow
def test_a_system_without_inputs():
    record = small.record(inputs=0)
    model = small.spec(hidden=1).fit(record)
    live = Live(model, observe=True)
    mean = []
    for outputs in record.y:
        mean.append(live.step().mean)
        live.correct(outputs)
    np.testing.assert_allclose(mean, model.predict(record).mean, rtol=1e-8)
    assert live.predict(7).mean.shape == (7, 1)


def test_no_step_of_a_loop_compiles(model):
    live = Live(model, observe=True)
    sizes = observer._advance._cache_size(), observer._correct._cache_size()
    run(live, NEW.u[:3], NEW.y[:3])
    run(live, NEW.u[3:5], small.with_gaps(NEW, (3, 0)).y[3:5])
    assert sizes == (observer._advance._cache_size(), observer._correct._cache_size())


# Refusals ------------------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused(model):
    live = Live(model)
    with pytest.raises(InputError, match="correct takes the measured outputs of the last step, and none was made"):
        live.correct(NEW.y[0])
    live.step(NEW.u[0])
    for wrong, message in (
        ([1.0], r"y has 1 value\(s\), but the model has 2 output\(s\): \['y0', 'y1'\]"),
        ([1.0, 2.0, 3.0], r"y has 3 value\(s\)"),
        (np.ones((1, 2, 1)), "y must be a vector or a matrix"),
        ([np.inf, 0.0], "y has 1 value.* infinite|y has 1 value"),
        (["a", "b"], "y must be a table of"),
    ):
        with pytest.raises(InputError, match=message):
            live.correct(wrong)
    with pytest.raises(InputError, match=r"predict needs the covariance of the states: correct\(y\) first, or Live"):
        live.predict(3)
    with pytest.raises(InputError, match="state needs the covariance of the states"):
        _ = live.state
    with pytest.raises(InputError, match="observe must be true or false, received 1"):
        Live(model, observe=1)
    with pytest.raises(InputError, match=r"apply\(u\) is for a step that was made without inputs"):
        live.apply(NEW.u[0])


def test_predictions_refuse_what_does_not_fit(model):
    live = Live(model, observe=True)
    with pytest.raises(InputError, match="pass u, the inputs of the next k steps: there was no step"):
        live.predict(3)
    for wrong, message in (
        ((3, NEW.u[:2]), r"u has 2 row\(s\), but k=3; pass the inputs of the next 3 step\(s\)"),
        ((0, NEW.u[:1]), "k must be a whole number of at least 1, received 0"),
        ((2, NEW.u[:2, :1]), r"u has 1 column\(s\), but the model was trained with 2"),
    ):
        with pytest.raises(InputError, match=message):
            live.predict(*wrong)
    live.step()
    for call in (live.step, lambda: live.step(NEW.u[0]), lambda: live.predict(2, NEW.u[:2])):
        with pytest.raises(InputError, match="the inputs of the last step are open"):
            call()


@pytest.mark.slow
def test_inputs_without_delay_cannot_be_left_out():
    u = np.random.default_rng(0).uniform(-1, 1, 60)
    live = Live(small.spec(hidden=1, input_delay=0).fit(Series(u, np.tanh(2 * u))))
    with pytest.raises(InputError, match="pass the inputs of the step: with input_delay=0"):
        live.step()
