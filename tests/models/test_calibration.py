"""A calibrated model: its noise, its bands and its verdict."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.data.scaling import Standardiser
from revarb.models.calibration import Calibration
from revarb.models.recipe import R0_FREE, Recipe, Stage
from support import small

SOME = Calibration(0.3, 0.04, (2, 10), (0.8, 1.0, 1.5), 12, 0.2)


@pytest.fixture(scope="module")
def model():
    recipe = Recipe(stages=(Stage(R0_FREE, 5),))
    return small.spec(hidden=1, recipe=recipe, calibrate=True).fit(small.record(samples=150))


def factors(model, simulate):
    """How much wider the band is than with factors of one, row by row."""
    unit = replace(model, calibration=replace(model.calibration, factors=(1.0, 1.0, 1.0)))
    return (simulate(model).std / simulate(unit).std)[:, 0]


@pytest.mark.usefixtures("same_width_beyond")
def test_it_changes_the_noise_and_the_bands_but_not_the_mean_run(model):
    record = small.record(5)
    u = record.u
    changed, plain = replace(model, calibration=SOME), replace(model, calibration=None)
    np.testing.assert_array_equal(changed.simulate(u, "mean").mean, plain.simulate(u, "mean").mean)
    assert float(changed.chain.output.sigma2) == 0.04
    assert float(changed.chain.hidden[0].sigma2) == pytest.approx(0.3 * float(plain.chain.hidden[0].sigma2))
    warm = factors(changed, lambda each: each.simulate(u, start="continue"))
    assert SOME.middles == (1.5, 6.5, 14.5)
    np.testing.assert_allclose(warm, np.interp(1 + np.arange(len(u)), SOME.middles, SOME.factors))
    cold, shares = factors(changed, lambda each: each.simulate(u)), changed.settling.shares
    unsettled = np.pad(shares, (0, len(u) - len(shares)))
    assert unsettled[0] > 0.9
    np.testing.assert_allclose(cold, 1.5 - 0.5 * unsettled)
    ahead = factors(changed, lambda each: each.predict(record, 2))
    np.testing.assert_allclose(ahead, [*cold[:2], *[warm[1]] * (len(ahead) - 2)])


@pytest.mark.usefixtures("same_width_beyond")
def test_one_distribution(model):
    """The interval follows from mean and std, and so does the spread of the samples."""
    record = small.record(5)
    wide, narrow = (replace(SOME, factors=(factor,) * 3) for factor in (1.7, 1.0))
    one, other = (replace(model, calibration=each) for each in (wide, narrow))
    path, plain = one.simulate(record.u, start="continue"), other.simulate(record.u, start="continue")
    np.testing.assert_allclose(path.std, 1.7 * plain.std, rtol=1e-12)
    lower, upper = path.interval(0.95)
    np.testing.assert_allclose(upper - lower, 2 * 1.959963984540054 * path.std, rtol=1e-12)
    drawn, plainly_drawn = (each.simulate(record.u, "samples", start="continue", samples=50) for each in (one, other))
    ours, theirs = drawn.samples - drawn.mean, plainly_drawn.samples - plainly_drawn.mean
    np.testing.assert_allclose(ours, 1.7 * theirs, rtol=1e-9, atol=1e-12)


def test_the_verdict_compares_with_arx_and_the_mean(model):
    judged = replace(SOME, error=0.7, linear_error=0.9, mean_error=1.0)
    assert "hardly better than the mean; try revarb.fit" in replace(model, calibration=judged).verdict
    assert replace(model, calibration=SOME).verdict is None  # a file of version 0.1
    assert replace(model, calibration=None).verdict is None
    assert model.verdict in " ".join(str(model.summary()).split())


def test_fewer_states_than_outputs_are_named(model):
    judged = replace(SOME, error=0.7, linear_error=0.3, mean_error=1.0)
    scaling = Standardiser(np.ones(1), np.ones(1), np.ones(2), np.ones(2))
    prep = replace(model.preprocessor, output_names=("a", "b"), output_range=None, scaling=scaling)
    two = replace(model, calibration=judged, preprocessor=prep)
    assert two.verdict.endswith("try latent_dim=2 (it has 1 latent state(s) for 2 outputs)")
