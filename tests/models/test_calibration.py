"""A calibrated model: noise, bands, scores, files."""

from dataclasses import asdict, replace

import numpy as np
import pytest

import revarb
from revarb.data.scaling import Standardiser, half_width
from revarb.errors import InputError
from revarb.models.calibration import Calibration
from revarb.models.recipe import R0_FREE, Recipe, Stage
from support import small

QUICK = Recipe(stages=(Stage(R0_FREE, 5),))
SPEC = small.spec(hidden=1, recipe=QUICK, calibrate=True)
SOME = Calibration(0.3, 0.04, (2, 10), (0.8, 1.0, 1.5), 12, 0.2)


@pytest.fixture(scope="module")
def record():
    return small.record(samples=150)


@pytest.fixture(scope="module")
def model(record):
    return SPEC.fit(record)


def factors(model, simulate):
    """How much wider the band is than with factors of one, row by row."""
    unit = replace(model, calibration=replace(model.calibration, factors=(1.0, 1.0, 1.0)))
    return (simulate(model).std / simulate(unit).std)[:, 0]


def test_it_changes_the_noise_and_the_bands_but_not_the_mean_run(model):
    u, record = small.record(5).u, small.record(5)
    changed, plain = replace(model, calibration=SOME), replace(model, calibration=None)
    np.testing.assert_array_equal(changed.simulate(u, "mean").mean, plain.simulate(u, "mean").mean)
    assert float(changed.chain.output.sigma2) == 0.04
    assert float(changed.chain.hidden[0].sigma2) == pytest.approx(0.3 * float(plain.chain.hidden[0].sigma2))
    warm = factors(changed, lambda each: each.simulate(u, start="continue"))
    np.testing.assert_allclose(warm[:12], [0.8] * 2 + [1.0] * 8 + [1.5] * 2)
    np.testing.assert_allclose(factors(changed, lambda each: each.simulate(u)), 1.5)  # cold
    ahead = factors(changed, lambda each: each.predict(record, 2))
    np.testing.assert_allclose(ahead, [1.5] * 2 + [0.8] * (len(ahead) - 2))  # the first rows are a cold run
    np.testing.assert_allclose(factors(changed, lambda each: each.predict(record, 11)), 1.5)


def test_the_interval_follows_from_the_standard_deviation(model):
    path = replace(model, calibration=SOME).simulate(small.record(5).u)
    lower, upper = path.interval(0.9)
    np.testing.assert_allclose(upper - path.mean, half_width(0.9) * path.std)
    np.testing.assert_allclose(path.mean - lower, half_width(0.9) * path.std)


def test_scores_use_the_calibrated_distribution(model):
    test = small.record(5)
    wide = replace(model, calibration=replace(SOME, factors=(10.0, 10.0, 10.0)))
    narrow = replace(model, calibration=replace(SOME, factors=(0.01, 0.01, 0.01)))
    found = [revarb.scores(each.simulate(test.u), test.y) for each in (wide, narrow)]
    assert found[0].coverage95 == 1.0 and found[1].coverage95 < 0.5
    assert found[0].nlpd < found[1].nlpd and found[0].rmse == found[1].rmse


def test_an_ensemble_mixes_the_calibrated_distributions(model):
    u = small.record(5).u
    wide = replace(model, calibration=replace(SOME, factors=(10.0, 10.0, 10.0)), seed=0)
    members = [wide, replace(model, calibration=SOME, seed=1), replace(model, calibration=None, seed=2)]
    paths = [member.simulate(u) for member in members]
    variance = np.mean([path.std**2 for path in paths], axis=0) + np.var([path.mean for path in paths], axis=0)
    np.testing.assert_allclose(revarb.Ensemble.from_members(members).simulate(u).std, np.sqrt(variance))


@pytest.mark.parametrize(
    "change",
    [{"latent_scale": -1.0}, {"output_noise": 0.0}, {"edges": (5, 2)}, {"factors": (1.0,)}, {"stretches": 0},
     {"error": float("nan")}, {"factors": (1.0, 0.0, 1.0)}],
)  # fmt: skip
def test_an_invalid_calibration_is_refused(change):
    with pytest.raises(InputError):
        Calibration.from_dict({**asdict(SOME), **change})


def test_the_verdict_compares_with_arx_and_the_mean(model):
    judged = replace(SOME, error=0.7, linear_error=0.9, mean_error=1.0)
    assert "hardly better than the mean; try revarb.fit" in replace(model, calibration=judged).verdict
    assert replace(model, calibration=SOME).verdict is None  # a file of version 0.1
    assert replace(model, calibration=None).verdict is None
    assert model.verdict in " ".join(str(model.summary()).split())


def test_fewer_states_than_outputs_are_named(model):
    judged = replace(SOME, error=0.7, linear_error=0.3, mean_error=1.0)
    prep = replace(
        model.preprocessor,
        output_names=("a", "b"),
        output_range=None,
        scaling=Standardiser(np.ones(1), np.ones(1), np.ones(2), np.ones(2)),
    )
    two = replace(model, calibration=judged, preprocessor=prep)
    assert two.verdict.endswith("try latent_dim=2 (it has 1 latent state(s) for 2 outputs)")
