"""What a calibration changes in a model."""

from dataclasses import asdict, replace

import numpy as np
import pytest

import revarb
from revarb.config.recipe import R0_FREE, Recipe, Stage
from revarb.data.trajectory import half_width
from revarb.errors import InputError
from revarb.models.calibration import Calibration
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


def test_it_changes_the_noise_and_the_bands_but_not_the_mean_run(model):
    u = small.record(5).u
    changed, plain = replace(model, calibration=SOME), replace(model, calibration=None)
    np.testing.assert_array_equal(changed.simulate(u, "mean").mean, plain.simulate(u, "mean").mean)
    assert float(changed.chain.output.sigma2) == 0.04
    assert float(changed.chain.hidden[0].sigma2) == pytest.approx(0.3 * float(plain.chain.hidden[0].sigma2))
    warm = changed.simulate(u, start="continue")
    np.testing.assert_array_equal(warm.widening[:12], [0.8] * 2 + [1.0] * 8 + [1.5] * 2)
    assert (changed.simulate(u).widening == 1.5).all()  # cold
    lower, upper = warm.interval(0.9)
    np.testing.assert_allclose(upper - lower, 2 * half_width(0.9) * warm.std * warm.widening[:, None])
    ahead = changed.predict(small.record(5), 2).widening
    assert (ahead[:2] == 1.5).all() and (ahead[2:] == 0.8).all()  # the first rows are a cold run
    assert (changed.predict(small.record(5), 11).widening == 1.5).all()


def test_scores_judge_the_widened_band(model):
    test = small.record(5)
    wide = replace(model, calibration=replace(SOME, factors=(10.0, 10.0, 10.0)))
    narrow = replace(model, calibration=replace(SOME, factors=(0.01, 0.01, 0.01)))
    assert revarb.scores(wide.simulate(test.u), test.y).coverage95 == 1.0
    assert revarb.scores(narrow.simulate(test.u), test.y).coverage95 < 0.5
    plain = replace(model, calibration=None, seed=2)
    ensemble = revarb.Ensemble.from_members([replace(wide, seed=0), replace(narrow, seed=1), plain])
    np.testing.assert_allclose(ensemble.simulate(test.u).widening, (10.0 + 0.01 + 1.0) / 3.0)


@pytest.mark.parametrize(
    "change",
    [{"latent_scale": -1.0}, {"output_noise": 0.0}, {"edges": (5, 2)}, {"factors": (1.0,)}, {"stretches": 0},
     {"error": float("nan")}, {"factors": (1.0, 0.0, 1.0)}],
)  # fmt: skip
def test_a_forged_calibration_is_refused(change):
    with pytest.raises(InputError):
        Calibration.from_dict({**asdict(SOME), **change})
