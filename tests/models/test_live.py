"""Live runs: step by step the same as a simulation, with samples; states corrected by measured outputs."""

from dataclasses import replace

import numpy as np
import pytest

from fuzz import samples
from revarb.data.series import Window
from revarb.fitting.arx import ARX
from revarb.models import live_runs
from revarb.models.calibration import Calibration
from revarb.models.ensemble import Ensemble
from revarb.models.live import Live
from revarb.models.live_runs import LiveStep
from support import small
from support.chains import smooth_chain

CALIBRATION = Calibration(0.5, 0.03, edges=(2, 10), factors=(1.1, 1.3, 1.6), stretches=12, error=0.2)
TWO = small.record(samples=60, inputs=2, outputs=2)
NEW = small.record(5, samples=30, inputs=2, outputs=2)


@pytest.fixture(scope="module")
def model():
    return replace(small.spec(latent_dim=2).fit(TWO), calibration=CALIBRATION)


@pytest.fixture(scope="module")
def uncalibrated(model):
    return replace(model, calibration=None)


@pytest.fixture(scope="module")
def linear():
    return replace(ARX(3, 4).fit(TWO), horizon_std=np.array([[0.1, 0.2], [0.3, 0.4]]))


@pytest.fixture(scope="module")
def mixture(model, linear):
    """Members that look back differently far."""
    return Ensemble.from_candidates([model, linear])


@pytest.fixture(scope="module")
def single():
    return small.spec(hidden=1).fit(small.record())


def run(live, u, y):
    """Steps and corrections over a record; every step before it was measured, as arrays of one `LiveStep`."""
    steps = []
    for inputs, outputs in zip(u, y, strict=True):
        steps.append(live.step(inputs))
        live.correct(outputs)
    return LiveStep(*(np.array(values) for values in zip(*steps, strict=True)))


def rows(path, which):
    """Some rows of a trajectory as a step."""
    return LiveStep(path.mean[which], np.empty(0), path.std[which])


def same_bands(one, other, rtol=1e-12):
    np.testing.assert_allclose(one.mean, other.mean, rtol=rtol)
    np.testing.assert_allclose(one.std, other.std, rtol=rtol)


@pytest.mark.parametrize("start", ["cold", "continue"])
def test_steps_are_the_mean_only_run(single, start):
    u, live = small.record(5).u, Live(single, start)
    steps = np.stack([live.step(row).mean for row in u])
    np.testing.assert_allclose(steps, single.simulate(u, "mean", start=start).mean, rtol=1e-10, atol=1e-12)
    live.reset()
    np.testing.assert_array_equal(live.step(u[0]).mean, steps[0])


def test_samples_are_reproducible_and_surround_the_run(single):
    live, again = (Live(single, single.final_states[0], samples=200, seed=3) for _ in range(2))
    step = live.step(0.3)
    assert step.samples.shape == (200, 1)
    np.testing.assert_array_equal(again.step(0.3).samples, step.samples)
    assert abs(step.samples.mean() - step.mean[0]) < 4.0 * step.samples.std() / np.sqrt(200)


def test_a_sample_keeps_its_functions(single):
    """Without noise, and reset to a run that has settled, a sample has the same value at every step."""
    quiet = replace(single, trained=single.trained._replace(chain=smooth_chain(single.trained.chain, 1e-18)))
    live = Live(quiet, samples=5, horizon=1)
    *_, before, last = (live.step(0.3).samples for _ in range(100))
    np.testing.assert_allclose(before, last, atol=1e-6)
    assert np.ptp(last) > 1e-3


@pytest.mark.parametrize("kind", ["single", "linear"])
@pytest.mark.parametrize("observe", [True, False])
def test_samples_fan_out_beyond_the_training_data_and_keep_their_order(kind, observe, request):
    """As those of `simulate`: as far apart as the band is wide, with one draw along the run."""
    model = request.getfixturevalue(kind)
    live, again = (Live(model, samples=200, horizon=100, observe=observe) for _ in range(2))
    inside = np.zeros((1, len(model.input_names)))
    spreads, before = [], None
    for u in np.concatenate([np.repeat(inside, 10, axis=0), np.repeat(inside + 4.0, 15, axis=0)]):
        step = live.step(u)
        spreads.append(step.samples.std(axis=0))
        if before is not None:
            ranks = [each[:, 0].argsort().argsort() for each in (before, step.samples)]
            last = np.corrcoef(*ranks)[0, 1]
        before = step.samples
    assert (spreads[-1] > 2.0 * spreads[9]).all() and last > 0.7
    if step.std is not None:
        np.testing.assert_allclose(spreads[-1], step.std, rtol=0.25)
    live.reset()
    np.testing.assert_array_equal(live.step(inside[0]).samples, again.step(inside[0]).samples)


def test_samples_are_drawn_as_trajectories_are(single):
    """After a horizon of steps their variance is that of `simulate(…, "samples")` without the output noise."""
    u = small.record(5).u[:8]
    live = Live(single, single.final_states[0], samples=1000, horizon=100)
    samples = [live.step(row).samples for row in u][-1]
    start = single.final_states[0]
    known = type(start)(start.mean, np.zeros_like(start.cov), start.past_u)
    drawn = single.simulate(u, "samples", start=known, samples=1000).samples[:, -1]
    noise = float(single.scaling.y_std[0] ** 2 * single.trained.chain.output.sigma2)
    assert samples.var() <= drawn.var() == pytest.approx(samples.var() + noise, rel=0.25)


@pytest.mark.parametrize("kind", ["model", "uncalibrated", "linear", "mixture"])
def test_steps_with_corrections_are_predictions_along_a_record(kind, request):
    """Which are those of a Kalman filter for a linear chain: tests/simulation/test_linear_chain.py."""
    model, record = request.getfixturevalue(kind), small.with_gaps(NEW, (7, 0), (12, 1))
    if kind in ("uncalibrated", "linear"):  # else steps without any measurement have the calibrated noise
        record = small.with_gaps(record, slice(9, 11))
    live, ahead = Live(model, observe=True), {k: model.predict(record, horizon=k) for k in (1, 4)}
    steps = run(live, record.u[:15], record.y[:15])
    same_bands(steps, rows(ahead[1], slice(15)), rtol=1e-9)
    path = live.predict(4, record.u[15:19])
    assert (path.start, path.method, path.skip, len(path)) == ("live run, step 15", ahead[4].method, 0, 4)
    for k, expected in ahead.items():
        same_bands(rows(path, k - 1), rows(expected, 14 + k), rtol=1e-9)


@pytest.mark.parametrize("kind", ["model", "linear"])
@pytest.mark.parametrize("record", [NEW, NEW[:1], small.with_gaps(NEW[:4], 0, 2), small.with_gaps(NEW, slice(28, 30))])
def test_the_state_is_that_after_a_measured_window(kind, record, request):
    """Of fewer samples than the lags, and with gaps."""
    model = request.getfixturevalue(kind)
    live = Live(model, observe=True)
    run(live, record.u, record.y)
    window = Window(record.u, record.y)
    expected = model.resolve_start(window)
    assert (live.state.age, live.state.cold) == (expected.age, expected.cold)
    if kind == "linear" or live.state.age == 0:  # else it has the calibrated noise
        for name in ("mean", "cov", "past_u"):
            np.testing.assert_allclose(getattr(live.state, name), getattr(expected.state, name), rtol=1e-9, atol=1e-12)
    if kind == "linear":
        same_bands(live.predict(9, NEW.u[:9]), model.simulate(NEW.u[:9], start=window), rtol=1e-9)


def test_the_first_correction_of_a_run_that_did_not_observe(model):
    """Of its first step: the state is that of one that observed."""
    live = Live(model)
    live.step(NEW.u[0])
    live.correct(NEW.y[0])
    run(live, NEW.u[1:], NEW.y[1:])
    expected = model.resolve_start(Window(NEW.u, NEW.y)).state
    np.testing.assert_allclose(live.state.cov, expected.cov, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["model", "linear", "mixture"])
@pytest.mark.parametrize("start", ["cold", "continue", Window(TWO.u, TWO.y)])
@pytest.mark.parametrize("corrected", [0, 10])
def test_a_simulation_from_the_state_is_the_prediction_also_between_corrections(kind, start, corrected, request):
    """With the calibrated noise of the steps since the last correction, and the band width of as many steps."""
    model = request.getfixturevalue(kind)
    live = Live(model, start, observe=True)
    same_bands(run(live, NEW.u, np.full(NEW.y.shape, np.nan)), model.simulate(NEW.u, start=start), rtol=1e-9)
    live.reset()
    if corrected:
        run(live, NEW.u[:corrected], NEW.y[:corrected])
    for inputs in NEW.u[corrected : corrected + 5]:
        live.step()
        live.apply(inputs)
    u = NEW.u[corrected + 5 :]
    path = live.predict(len(u), u)
    same_bands(model.simulate(u, start=live.state), path)
    again = Live(model, live.state, observe=True)
    for row, inputs in enumerate(u[:3]):  # and so are further steps
        step = again.step(inputs)
        same_bands(step, live.step(inputs))
        same_bands(step, rows(path, row), rtol=1e-9)


@pytest.mark.parametrize("observe", [True, False])
def test_reset_forgets_corrections(single, observe):
    live = Live(single, observe=observe)
    first = live.step(0.3)
    live.correct(first.mean + 1.0)
    live.step(0.2)
    live.reset()
    again = live.step(0.3)
    np.testing.assert_array_equal(again.mean, first.mean)
    assert (again.std is None) == (not observe)


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
    held, given = later.predict(4), at_once.predict(4, np.tile(NEW.u[9], (4, 1)))  # without u the last ones are held
    np.testing.assert_allclose(held.inputs, given.inputs, rtol=1e-12)
    same_bands(held, given)


def test_a_system_without_inputs():
    record = small.record(inputs=0)
    model = samples.at_the_start(small.spec(hidden=1), 0, [record])
    live = Live(model, observe=True)
    steps = run(live, [None] * len(record), record.y)
    np.testing.assert_allclose(steps.mean, model.predict(record).mean, rtol=1e-8)
    assert live.predict(7).mean.shape == (7, 1)


def count_programs():
    programs = (
        live_runs._advance_joint,
        live_runs._correct_joint,
        live_runs._advance_samples,
        live_runs._advance_linear,
    )
    return [program._cache_size() for program in programs]


@pytest.mark.parametrize("kind", ["model", "mixture"])
def test_no_step_of_a_loop_compiles(kind, request):
    live = Live(request.getfixturevalue(kind), observe=True)
    sizes = count_programs()
    run(live, NEW.u[:3], NEW.y[:3])
    run(live, NEW.u[3:5], small.with_gaps(NEW, (3, 0)).y[3:5])
    assert sizes == count_programs()


def test_a_mixture_is_mean_only_until_its_first_correction(mixture):
    live, free = Live(mixture, samples=5), mixture.simulate(NEW.u, "mean")
    for row in range(12):
        step = live.step(NEW.u[row])
        assert step.std is None and step.samples.shape == (5, 2)
        np.testing.assert_allclose(step.mean, free.mean[row], rtol=1e-9)
    live.correct(NEW.y[11])
    assert (live.step(NEW.u[12]).std > 0.0).all() and len(live.state) == 2


def test_a_band_that_adapts_stays_honest_on_a_drifting_plant():
    """Its noise grows to fifteen times that of the training: a fixed band loses, an adapting one keeps its share."""
    model, drifting = ARX(2, 2).fit(small.record(samples=200)), small.record(9, samples=900)
    noise = 0.3 * np.linspace(0.0, 1.0, 900) * np.random.default_rng(2).normal(size=900)
    y = drifting.y + noise[:, None]
    shares, lives = [], [Live(model, observe=True), Live(model, adapt=True)]
    for live in lives:
        steps = run(live, drifting.u, y)
        shares.append(np.mean(np.abs(y - steps.mean)[450:] <= 1.96 * steps.std[450:]))
    fixed, adapted = shares
    assert 0.92 < adapted < 0.98 and fixed < 0.7 and lives[0].factors == [1.0] and lives[1].factors > 2.0
    ahead = [live.predict(3, drifting.u[:3]).std for live in lives]
    np.testing.assert_allclose(ahead[1], ahead[0] * lives[1].factors)
    lives[1].reset()
    assert lives[1].factors == [1.0]
