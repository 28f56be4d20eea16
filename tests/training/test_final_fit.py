"""The bands of a chosen model, and what is fitted in the end."""

import numpy as np
import pytest

from revarb.data.distribution import half_width
from revarb.data.series import Series
from revarb.errors import ComputationError
from revarb.models.fitted_arx import FittedARX
from revarb.optim.status import Status
from revarb.training import choice_calibration, choose, linear_trial
from revarb.training.calibration_rule import (
    MIN_ERRORS,
    POOLED,
    SCALES,
    TAILS,
    HeldOutRun,
    Noises,
    choose_noises_by_likelihood,
    find_pooled_band,
    find_pooled_width,
    find_width_factor,
    find_worst_quantile,
)
from revarb.training.choice_calibration import calibrate_linear
from revarb.training.choice_store import ChoiceStore
from revarb.training.final_fit import fit_interrupted, fit_taken
from revarb.training.linear_trial import try_linear
from revarb.training.ranking import rank
from revarb.training.segments import simulate_segments
from revarb.training.trials import Progress, Trials
from support import small

UNIT = Noises(1.0, 1.0)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(linear_trial, "DELAYS", (1,))
    monkeypatch.setattr(choice_calibration, "HORIZONS", 2)
    for module in (choose, linear_trial):
        monkeypatch.setattr(module, "MORE_LAGS", 3)


def shares_inside(errors, std):
    inside = [np.where(np.isnan(each), np.nan, np.abs(each) <= half_width(0.95) * std + 1e-12) for each in errors]
    return np.array([np.nanmean(each, axis=0) for each in inside])


def test_the_bands_of_a_linear_model_hold_95_percent_of_the_worst_stretch():
    record = small.with_gaps(small.record(samples=400, outputs=2), slice(80, 85))
    held_out = choose._hold_out([record])
    [scored] = try_linear(held_out)
    std, horizon_std = calibrate_linear(scored, held_out, held_out.scaling)
    y_std = held_out.scaling.y_std
    runs = {
        fold: simulate_segments(model.chain, model.preprocessor, held_out.segments)
        for fold, model in scored.folds.items()
    }
    paths = {fold: model.predict(record, 2).mean for fold, model in scored.folds.items()}
    cold = [runs[stretch.fold][number] / y_std for number, stretch in enumerate(held_out.stretches)]
    ahead = [((paths[stretch.fold] - record.y) / y_std)[stretch.rows] for stretch in held_out.stretches]
    shortest = min(np.isfinite(error).sum(0).min() for error in cold)
    assert shortest >= MIN_ERRORS
    np.testing.assert_allclose(shares_inside(cold, std).min(0), 0.95, atol=1.0 / shortest)
    assert std.shape == (2,) and horizon_std.shape == (2, 2) and (horizon_std[0] < std).all()
    np.testing.assert_allclose(shares_inside(ahead, horizon_std[1]).min(0), 0.95, atol=1.0 / shortest)


def test_an_output_that_is_not_measured_in_any_stretch_has_the_band_of_the_mean():
    record = small.record(samples=150, outputs=2)
    y = record.y.copy()
    y[6:, 1] = np.nan
    held_out = choose._hold_out([Series(record.u, y)])
    [scored] = try_linear(choose._hold_out([record]))
    std, horizon_std = calibrate_linear(scored, held_out, held_out.scaling)
    assert std[1] == 1.0 and (horizon_std[:, 1] == 1.0).all() and std[0] < 1.0


def test_every_record_is_predicted_once_for_each_fold_and_horizon(monkeypatch):
    records = [small.record(0, samples=100), small.record(1, samples=60)]
    held_out = choose._hold_out(records)
    [scored] = try_linear(held_out)
    calls, predict = [], FittedARX.predict

    def count(self, record, horizon):
        calls.append((id(self), id(record), horizon))
        return predict(self, record, horizon)

    monkeypatch.setattr(FittedARX, "predict", count)
    calibrate_linear(scored, held_out, held_out.scaling)
    pairs = {(stretch.fold, stretch.record) for stretch in held_out.stretches}
    assert len(calls) == len(set(calls)) == 2 * len(pairs) < 2 * len(held_out.stretches)


def test_predictions_that_diverge_leave_the_band_of_cold_runs(monkeypatch):
    records = [small.record(samples=150, outputs=2)]
    held_out = choose._hold_out(records)
    [scored] = try_linear(held_out)
    expected, _ = calibrate_linear(scored, held_out, held_out.scaling)

    def diverge(self, record, horizon):
        raise ComputationError("diverged")

    monkeypatch.setattr(FittedARX, "predict", diverge)
    std, horizon_std = calibrate_linear(scored, held_out, held_out.scaling)
    np.testing.assert_array_equal(std, expected)
    assert horizon_std.shape == (0, 2)
    model = fit_interrupted(rank([scored], held_out, {}), held_out, records, 0)
    assert isinstance(model, FittedARX) and model.horizon_std.shape == (0, 2)


def test_a_linear_winner_is_fitted_to_all_records(tmp_path):
    records = [small.record(0, samples=100), small.record(1, samples=60)]
    held_out = choose._hold_out(records)
    ranking = rank(try_linear(held_out), held_out, {})
    trials = Trials(held_out, 7, 1, ChoiceStore(tmp_path, "some", False), Progress(lambda done, text: None, []))
    model = fit_taken(ranking, trials, [*records, small.record(2, samples=50)], 1)
    assert model.choice is ranking.choice and model.seed == 7 and model.order == ranking.winner.order
    assert len(model.final_states) == 3 and model.status is Status.CONVERGED
    interrupted = fit_interrupted(ranking, held_out, records, 7)
    assert interrupted.status is Status.INTERRUPTED and interrupted.choice.taken == ranking.choice.taken
    assert interrupted.choice.sentence == ranking.choice.sentence


# The rule of the bands of a recurrent GP -----------------------------------------------------------------------------


def held(rng, count=300, std=1.0, variance=0.0):
    return HeldOutRun(std * rng.normal(size=count), np.full(count, variance), np.arange(1.0, count + 1.0))


def test_pooled_bands_hold_95_percent_of_all_errors():
    rng = np.random.default_rng(0)
    runs = [held(rng, std=std) for std in (0.5, 1.0, 1.0, 3.0)]
    width = find_pooled_width(runs, UNIT)
    errors = np.abs(np.concatenate([run.error for run in runs]))
    assert np.mean(errors <= width * half_width(0.95)) == pytest.approx(0.95, abs=0.002)
    assert width == find_width_factor(HeldOutRun(*map(np.concatenate, zip(*runs, strict=True))), UNIT)
    assert find_pooled_width([held(rng, std=0.1)], UNIT) == pytest.approx(0.1, rel=0.1)  # narrower where that is proved


def test_tails_are_such_that_both_bands_hold_their_share():
    rng = np.random.default_rng(0)
    for errors in (rng.standard_t(3, size=4000), np.concatenate([rng.normal(size=3000), 2.5 * rng.normal(size=1000)])):
        runs = [HeldOutRun(errors, np.zeros(len(errors)), np.arange(1.0, 1.0 + len(errors)))]
        noises, width = find_pooled_band(runs, UNIT)
        for level in (0.5, 0.95):
            inside = np.abs(errors) <= width * half_width(level, noises.degrees)
            assert np.mean(inside) == pytest.approx(level, abs=0.02)


def test_light_tails_are_gaussian():
    uniform = HeldOutRun(np.random.default_rng(0).uniform(-1.0, 1.0, 1000), np.zeros(1000), np.arange(1.0, 1001.0))
    noises, width = find_pooled_band([uniform], UNIT)
    assert noises.degrees is None and width == find_pooled_width([uniform], UNIT)
    silent = HeldOutRun(np.array([0.0] * 80 + [1.0] * 20), np.zeros(100), np.arange(1.0, 101.0))
    assert find_pooled_band([silent], UNIT)[0].degrees == min(TAILS)


def test_a_constant_band_is_wide_enough_on_every_stretch():
    rng = np.random.default_rng(0)
    errors = [std * rng.normal(size=300) for std in (0.5, 1.0, 1.0, 3.0)]
    width = find_worst_quantile(errors)
    shares = [np.mean(np.abs(error) <= width) for error in errors]
    assert min(shares) == shares[-1] == pytest.approx(0.95, abs=0.005)


def test_stretches_with_few_errors_count_together():
    rng = np.random.default_rng(0)
    few = [rng.normal(size=MIN_ERRORS - 1) for _ in range(200)]
    assert find_worst_quantile(few) == np.quantile(np.abs(np.concatenate(few)), 0.95)
    assert find_worst_quantile([*few, 5.0 * rng.normal(size=MIN_ERRORS)]) > 5.0
    assert np.isnan(find_worst_quantile([np.empty(0), np.empty(0)]))


def test_latent_noise_that_explains_the_errors_is_kept():
    rng = np.random.default_rng(1)
    stds = np.linspace(0.2, 2.0, 300)
    drawn = [stds * rng.normal(size=300) for _ in range(6)]
    runs = {scale: [HeldOutRun(error, scale * stds**2, np.arange(1.0, 301.0)) for error in drawn] for scale in SCALES}
    assert choose_noises_by_likelihood(runs, 1e-4)[0] == 1.0
    useless = {
        scale: [HeldOutRun(each, np.full(300, 20.0 * scale), np.ones(300)) for each in drawn] for scale in SCALES
    }
    scale, noise, _ = choose_noises_by_likelihood(useless, 1e-4)
    assert scale == 0.0 and noise == pytest.approx(np.mean(stds**2), rel=0.2)
    assert POOLED.choose_noises is choose_noises_by_likelihood and POOLED.find_band is find_pooled_band
