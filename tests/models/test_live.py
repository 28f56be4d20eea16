"""Live runs: step by step the same as a simulation, with samples."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.models.live import Live
from support import small
from support.chains import smooth_chain


@pytest.fixture(scope="module")
def model():
    return small.spec(hidden=1).fit(small.record())


@pytest.mark.parametrize("start", ["cold", "warm"])
def test_steps_are_the_mean_only_run(model, start):
    u = small.record(5).u
    initial = "cold" if start == "cold" else model.final_states[0]
    live = Live(model, initial)
    steps = np.stack([live.step(row).mean for row in u])
    np.testing.assert_allclose(steps, model.simulate(u, "mean", start=initial).mean, rtol=1e-10, atol=1e-12)
    live.reset()
    np.testing.assert_array_equal(live.step(u[0]).mean, steps[0])


@pytest.mark.slow
def test_ghosts_spread_until_they_are_reset(model):
    def spreads(horizon):
        live = Live(model, model.final_states[0], samples=800, horizon=horizon)
        return [live.step(row).samples.std() for row in small.record(5).u]

    assert np.mean(spreads(1)) < 0.98 * np.mean(spreads(60))


def test_ghosts_are_reproducible_and_surround_the_run(model):
    live, again = (Live(model, model.final_states[0], samples=200, seed=3) for _ in range(2))
    step = live.step(0.3)
    assert step.samples.shape == (200, 1)
    np.testing.assert_array_equal(again.step(0.3).samples, step.samples)
    assert abs(step.samples.mean() - step.mean[0]) < 4.0 * step.samples.std() / np.sqrt(200)


def test_a_ghost_keeps_its_functions(model):
    """Without noise, and reset to a run that has settled, a ghost has the same value at every step."""
    quiet = replace(model, trained=model.trained._replace(chain=smooth_chain(model.trained.chain, 1e-18)))
    live = Live(quiet, samples=5, horizon=1)
    *_, before, last = (live.step(0.3).samples for _ in range(100))
    np.testing.assert_allclose(before, last, atol=1e-6)
    assert np.ptp(last) > 1e-3


@pytest.mark.slow
def test_ghosts_are_drawn_as_trajectories_are(model):
    """After a horizon of steps their variance is that of `simulate(…, "samples")` without the output noise."""
    u = small.record(5).u[:8]
    live = Live(model, model.final_states[0], samples=4000, horizon=100)
    samples = [live.step(row).samples for row in u][-1]
    start = model.final_states[0]
    known = type(start)(start.mean, np.zeros_like(start.cov), start.past_u)
    drawn = model.simulate(u, "samples", start=known, samples=4000).samples[:, -1]
    noise = float(model.scaling.y_std[0] ** 2 * model.trained.chain.output.sigma2)
    assert samples.var() <= drawn.var() == pytest.approx(samples.var() + noise, rel=0.25)
