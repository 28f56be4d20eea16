"""Noise and bands from stretches that a fit has not seen."""

from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest

import revarb
import small
from revarb.config.recipe import R0_FREE, Recipe, Stage
from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.data.trajectory import half_width
from revarb.data.windows import Order
from revarb.errors import InputError
from revarb.models.calibration import Calibration
from revarb.training.calibration_rule import SCALES, HeldOutRun, choose_latent_scale, choose_output_noise, width_factor
from revarb.training.stretches import FOLDS, STRETCHES, cut_stretches

QUICK = Recipe(stages=(Stage(R0_FREE, 5),))
SPEC = small.spec(hidden=1, recipe=QUICK, calibrate=True)
SOME = Calibration(0.3, 0.04, (2, 10), (0.8, 1.0, 1.5), 12, 0.2)


@pytest.fixture(scope="module")
def record():
    return small.record(samples=150)


@pytest.fixture(scope="module")
def model(record):
    return SPEC.fit(record)


def frame_of(*records):
    return Preprocessor(Standardiser.from_records(records), Order(2, 2, 1), ("u",), ("y",), 1.0)


def held(rng, count=200, std=1.0, variance=0.0):
    return HeldOutRun(std * rng.normal(size=count), np.full(count, variance), np.arange(1.0, count + 1.0))


def test_stretches_cover_a_record_and_neighbours_are_seen(record):
    found = cut_stretches([record], frame_of(record))
    assert len(found) == STRETCHES and {stretch.fold for stretch in found} == set(range(FOLDS))
    assert found[0].begin == frame_of(record).skip and found[-1].end == len(record)
    for one, other in pairwise(found):
        assert one.end == other.begin and one.fold != other.fold


def test_several_records_are_shared_out_by_their_length():
    records = [small.record(0, samples=100), small.record(1, samples=50), small.record(2, samples=12)]
    found = cut_stretches(records, frame_of(*records))
    by_record = [sum(stretch.record == k for stretch in found) for k in range(3)]
    assert by_record[0] > by_record[1] >= by_record[2] >= 1
    assert all(stretch.begin >= min(4, len(records[stretch.record]) // 2) for stretch in found)


def test_too_short_a_record_has_none():
    record = small.record(samples=60)
    assert cut_stretches([record], frame_of(record)) == []
    assert SPEC.fit(record).calibration is None


def test_latent_noise_stays_unless_less_is_surely_better():
    rng = np.random.default_rng(0)
    base = rng.uniform(0.5, 1.0, size=12)
    noise = 0.2 * rng.normal(size=(len(SCALES), 12))
    assert choose_latent_scale(np.stack([base] * len(SCALES))) == 1.0
    assert choose_latent_scale(base * np.exp(noise)) == 1.0
    better = np.stack([base * 0.8, base * 0.7, base * 0.9, base])
    assert choose_latent_scale(better) == SCALES[1]
    one_stretch = np.stack([base] * len(SCALES))
    one_stretch[0, 3] *= 0.01
    assert choose_latent_scale(one_stretch) == 1.0


def test_the_outputs_noise_is_that_of_the_median_stretch():
    rng = np.random.default_rng(1)
    stretches = [held(rng, std=0.5, variance=0.05) for _ in range(11)]
    assert choose_output_noise(stretches, 0.01) == pytest.approx(0.2, rel=0.15)
    odd = [*stretches[:-1], held(rng, std=20.0, variance=0.05)]
    assert choose_output_noise(odd, 0.01) == pytest.approx(choose_output_noise(stretches, 0.01), rel=0.1)
    assert choose_output_noise([held(rng, std=0.01) for _ in range(5)], 0.04) == 0.04  # never less than the fit had


def test_the_width_is_that_of_the_ranked_error():
    rng = np.random.default_rng(2)
    assert width_factor(held(rng, count=5000), 1.0) == pytest.approx(1.0, abs=0.05)
    assert width_factor(held(rng, count=5000, std=2.0), 1.0) == pytest.approx(2.0, abs=0.1)
    few = HeldOutRun(np.array([0.1, -3.0, 0.2]), np.zeros(3), np.arange(3.0))
    assert width_factor(few, 1.0) == pytest.approx(3.0 / half_width(0.75))
    exact = HeldOutRun(np.arange(1.0, 20.0), np.zeros(19), np.arange(19.0))  # rank ⌈0.95 · 20⌉ = 19
    assert width_factor(exact, 1.0) == pytest.approx(19.0 / half_width(0.95))


def test_a_fit_is_calibrated_and_keeps_it(model, record, tmp_path):
    found = model.calibration
    assert found.stretches == STRETCHES and found.latent_scale in SCALES and found.output_noise >= 0.0099
    assert len(found.edges) == 2 and len(found.factors) == 3 and min(found.factors) >= 1.0
    loaded = revarb.load(model.save(tmp_path / "m.rgp"))
    assert loaded.calibration == found
    u = small.record(5).u
    np.testing.assert_array_equal(loaded.simulate(u).interval()[0], model.simulate(u).interval()[0])
    again = SPEC.fit(record)
    assert again.calibration == found
    assert replace(SPEC, calibrate=False).fit(record).calibration is None


def test_the_folds_do_not_see_their_stretches(record, monkeypatch):
    seen = []
    real = revarb.training.calibrate.prepare

    def noted(spec, records, seed):
        seen.append(records)
        return real(spec, records, seed)

    monkeypatch.setattr("revarb.training.calibrate.prepare", noted)
    SPEC.fit(record)
    gaps = np.array([np.isnan(records[0].y[:, 0]) for records in seen])
    assert gaps.shape[0] == FOLDS and (gaps.sum(0)[4:] == 1).all() and not gaps[:, :4].any()


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


def test_ctrl_c_while_calibrating_leaves_the_model(record, monkeypatch):
    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("revarb.training.calibrate.prepare", pressed)
    model = SPEC.fit(record)
    assert model.calibration is None and model.status is revarb.optimise.Status.INTERRUPTED


def test_a_fold_that_cannot_be_fitted_leaves_it_uncalibrated():
    """An output that moves in one stretch only is constant for the fold that misses it."""
    base = small.record(samples=150)
    y = np.column_stack([base.y[:, 0], np.zeros(150)])
    y[60:63, 1] = [1.0, 2.0, 1.0]
    with pytest.warns(UserWarning, match="the bands are not calibrated: output column 'y1' is constant"):
        assert SPEC.fit(Series(base.u, y)).calibration is None


def test_hardly_any_measured_stretch_leaves_it_uncalibrated(record):
    y = record.y.copy()
    y[40:] = np.nan
    with pytest.warns(UserWarning, match="3 of 12 stretches of the training data have measured outputs, and it takes"):
        assert SPEC.fit(Series(record.u, y)).calibration is None


@pytest.mark.slow
def test_a_short_record_beside_a_long_one_changes_little(record):
    short = small.record(1, samples=9)
    both, alone = SPEC.fit([record, short]).calibration, SPEC.fit(record).calibration
    assert both.stretches == alone.stretches + 1
    np.testing.assert_allclose(both.factors, alone.factors, rtol=0.5)


@pytest.mark.parametrize(
    "change",
    [{"latent_scale": -1.0}, {"output_noise": 0.0}, {"edges": (5, 2)}, {"factors": (1.0,)}, {"stretches": 0},
     {"error": float("nan")}, {"factors": (1.0, 0.0, 1.0)}],
)  # fmt: skip
def test_a_forged_calibration_is_refused(change):
    with pytest.raises(InputError):
        Calibration.from_dict({**asdict(SOME), **change})
