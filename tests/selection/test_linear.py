"""Linear candidates: one per input delay, the delay of the others, and their bands."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.data.scaling import half_width
from revarb.data.series import Window
from revarb.data.windows import Order
from revarb.errors import InputError
from revarb.fitting.calibration_rule import MIN_CONFORMAL
from revarb.fitting.held_out import LAST, mask_fold, simulate_blocks
from revarb.models.fitted_arx import FittedARX
from revarb.models.recipe import Status
from revarb.runtime.unfinished import UnfinishedParts
from revarb.selection import linear
from revarb.selection.candidates import CandidateKey
from revarb.selection.final_fit import fit_interrupted, fit_members
from revarb.selection.linear import (
    calibrate_linear,
    collect_linear_bands,
    find_delay,
    fit_linear_candidate,
    fit_linear_without_last,
    try_linear,
)
from revarb.selection.ranking import rank
from revarb.selection.records import hold_out_blocks
from revarb.selection.schedule import Progress, Scheduler
from revarb.selection.validation import CandidateResult, Validation
from support import small
from support.linear_systems import arx_record

ORDERS = [("", Order(4, 4, 1)), ("", Order(4, 4, 0)), ("", Order(4, 1, 8))]


def hold(*records, lags=4):
    return hold_out_blocks(records, Order(lags, lags if records[0].u.shape[1] else 0, 1))


def try_small(held_out):
    """The one linear candidate of few orders."""
    [result] = try_linear([("", Order(3, 3, 1))], held_out)
    return result


def test_a_candidate_for_every_delay_and_order():
    tried = try_linear(ORDERS, hold(arx_record(0, 130, delay=8)))
    assert [each.key.configuration.input_delay for each in tried] == [1, 0, 8]
    best = min(tried, key=lambda each: np.mean(np.log(each.errors)))
    assert best.key.configuration == Order(2, 1, 8) and best.name == "linear, 2 + 1 lags, delay 8"
    assert best.complete and best.path is None
    [one] = try_linear([("line", Order(3, 2, 1)), ("", Order(4, 2, 1))], hold(arx_record(0, 130)))
    assert one.name == "line" and one.key.configuration == Order(2, 1, 1)  # a given name is kept


def test_a_failure_of_one_delay_leaves_the_others(monkeypatch):
    real = linear.validate_linear

    def refuse(held_out, largest):
        if largest.input_delay == 0:
            raise InputError("too short")
        return real(held_out, largest)

    monkeypatch.setattr(linear, "validate_linear", refuse)
    held_out = hold(arx_record(0, 130))
    assert [each.key.configuration.input_delay for each in try_linear(ORDERS, held_out)] == [1, 8]
    with pytest.warns(UserWarning, match="^line could not be fitted and is left out: too short"):
        assert try_linear([("line", Order(1, 1, 0))], held_out, quiet=False) == []


USUAL = [0.5, 0.4, 0.6, 0.5]
FAR = [0.9, 0.8, 0.9, 0.8]


@pytest.mark.parametrize(
    ("errors", "delay"),
    [
        ({}, 1),
        ({0: USUAL}, 1),
        ({1: USUAL, 0: [0.51, 0.41, 0.61, 0.51]}, 1),
        ({1: USUAL, 0: [0.3, 0.2, 0.3, 0.3]}, 0),
        ({1: USUAL, 0: [0.2, 0.5, 0.6, 0.45]}, 1),  # better, but within two standard errors
        ({1: USUAL, 0: [0.47, 0.37, 0.56, 0.47]}, 1),  # clearly, but by less than a tenth
        ({1: USUAL, 16: [0.3, 0.2, 0.3, 0.3], 0: USUAL}, 16),
        ({1: FAR, 8: [0.6, 0.5, 0.6, 0.5]}, 1),  # it does not follow the record
        ({1: FAR, 8: [0.3, 0.2, 0.3, 0.2]}, 8),
        ({1: FAR, 8: [0.1, 0.8, 0.1, 0.9]}, 1),  # better by less than two standard errors
        ({1: USUAL, 8: [0.2, np.inf, 0.2, 0.2]}, 1),  # diverged
        ({1: [0.2, np.inf, 0.2, 0.2], 8: [0.2, np.inf, 0.2, 0.2]}, 1),
    ],
)
def test_the_delay_of_nonlinear_candidates(errors, delay):
    """By hand-made errors of each delay."""
    results = [CandidateResult(CandidateKey(Order(1, 1, k)), {}, np.array(each), 0.0) for k, each in errors.items()]
    assert find_delay(results) == delay


def shares_inside(errors, std):
    inside = [np.where(np.isnan(each), np.nan, np.abs(each) <= half_width(0.95) * std + 1e-12) for each in errors]
    return np.array([np.nanmean(each, axis=0) for each in inside])


def test_the_bands_hold_95_percent_of_the_worst_block():
    record = small.with_gaps(small.record(samples=400, outputs=2), slice(80, 85))
    held_out = hold(record)
    folds, y_std = try_small(held_out).folds, held_out.scaling.y_std
    std, horizon_std = calibrate_linear(folds, held_out, held_out.scaling)
    cold, ahead = [], {1: [], 2: [], 20: []}
    for number, block in enumerate(held_out.blocks):
        model, y = folds[block.fold], record.y[block.rows]
        cold.append((simulate_blocks(model, held_out.runs)[number] - y) / y_std)
        for horizon, errors in ahead.items():
            errors.append((model.predict(record, horizon).mean[block.rows] - y) / y_std)
    shortest = min(np.isfinite(error).sum(0).min() for error in cold)
    assert shortest >= MIN_CONFORMAL
    np.testing.assert_allclose(shares_inside(cold, std).min(0), 0.95, atol=1.0 / shortest)
    assert std.shape == (2,) and horizon_std.shape == (20, 2) and (horizon_std[0] < std).all()
    for horizon, errors in ahead.items():
        shares = shares_inside(errors, horizon_std[horizon - 1])
        np.testing.assert_allclose(shares.min(0), 0.95, atol=1.0 / shortest)


def test_an_output_that_is_not_measured_in_any_block_has_the_band_of_the_mean():
    record = small.record(samples=150, outputs=2)
    held_out, folds = hold(small.with_gaps(record, (slice(6, None), 1)), lags=3), try_small(hold(record, lags=3)).folds
    std, horizon_std = calibrate_linear(folds, held_out, held_out.scaling)
    assert std[1] == 1.0 and (horizon_std[:, 1] == 1.0).all() and std[0] < 1.0


@pytest.mark.usefixtures("same_width_beyond")
def test_the_runs_behind_its_bands_are_those_of_a_mixture():
    """Block by block: from the beginning of the record, and from a window just before it, with the band of each."""
    records = [small.with_gaps(small.record(number, samples=120, outputs=2), slice(80, 85)) for number in (0, 1)]
    held_out = hold(*records)
    result = try_small(held_out)
    model = fit_linear_candidate(result, held_out, records, seed=0)
    folds = {**result.folds, LAST: fit_linear_without_last(model.order, held_out)}
    bands = collect_linear_bands(model, folds, held_out)
    blocks, runs = (*held_out.blocks, *held_out.last_blocks), (*held_out.runs, *held_out.last_runs)
    assert list(bands.cold) == list(range(len(blocks))) and set(bands.ahead) <= set(range(len(held_out.blocks)))
    for number, block in enumerate(blocks):
        record = records[block.record]
        fold = replace(folds[block.fold], residual_std=model.residual_std, horizon_std=model.horizon_std)
        before = slice(block.begin - fold.order.skip, block.begin)
        window = Window(record.u[before], record.y[before], 1.0, ("u",), record.output_names)
        [mean] = simulate_blocks(fold, [runs[number]])
        paths = {"cold": (mean, np.tile(fold.scaling.raw_std(model.residual_std), (len(mean), 1)))}
        if number in bands.ahead:
            path = fold.simulate(record.u[block.rows], start=window)
            paths["ahead"] = (path.mean, path.std)
        for name, (mean, std) in paths.items():
            y, run = record.y[block.rows], getattr(bands, name)[number]
            measured = np.isfinite(y)
            unit = (model if name == "cold" else fold).scaling.y_std
            np.testing.assert_allclose(run.error, ((y - mean) / unit)[measured], atol=1e-9)
            np.testing.assert_allclose(run.variance, ((std / fold.scaling.y_std) ** 2)[measured])
    assert len(bands.ahead) >= len(held_out.blocks) - 2
    assert [(block.begin, block.end) for block in held_out.last_blocks] == [(80, 120)] * 2
    [rest, _] = mask_fold(records, held_out.last_blocks, LAST)
    assert np.isnan(rest.y[80:]).all() and np.array_equal(rest.y[:80], records[0].y[:80])
    changed = [replace(each, y=np.where(np.arange(120)[:, None] < 80, each.y, 7.0)) for each in records]
    same = fit_linear_without_last(model.order, hold(*changed))  # has not seen them
    np.testing.assert_array_equal(same.model.coefficients, folds[LAST].model.coefficients)
    still = [replace(each, y=np.where(np.arange(120)[:, None] < 80, 7.0, each.y)) for each in records]
    assert fit_linear_without_last(model.order, hold(*still)) is None


def test_predictions_that_diverge_leave_the_band_of_cold_runs(monkeypatch):
    records = [small.record(samples=150, outputs=2)]
    held_out = hold(*records)
    result = try_small(held_out)
    expected, _ = calibrate_linear(result.folds, held_out, held_out.scaling)

    monkeypatch.setattr(linear, "predict_horizons", lambda *args: np.full((20, 160, 2), 1e309))
    model = fit_linear_candidate(result, held_out, records, seed=7)
    np.testing.assert_array_equal(model.residual_std, expected)
    assert model.horizon_std.shape == (0, 2) and model.seed == 7 and model.status is Status.CONVERGED


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_linear_winner_is_fitted_to_all_records(tmp_path, interrupted):
    records = [small.record(number, samples=samples) for number, samples in enumerate((100, 60, 50))]
    held_out = hold(*records[:2], lags=3)
    ranking = rank([try_small(held_out)], held_out, {}, 5, interrupted)
    store, progress = UnfinishedParts(tmp_path, ["some.*"], False), Progress(lambda done, text: None, [])
    scheduler = Scheduler(records, held_out.records, held_out.blocks, 7, 1, store, "some", progress)
    if interrupted:
        model = fit_interrupted(ranking, held_out, records, 7)
    else:
        model = fit_members(ranking, Validation(held_out, scheduler), records)
    assert isinstance(model, FittedARX) and model.choice == ranking.describe() and model.seed == 7
    assert model.order == ranking.best.key.configuration and len(model.final_states) == 3
    assert model.status is (Status.INTERRUPTED if interrupted else Status.CONVERGED)
