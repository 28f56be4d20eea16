"""Linear models as candidates: the best order for each input delay, and the bands of the one that is taken."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float64

from revarb.data.preprocessor import Preprocessor, check_finite
from revarb.data.scaling import Standardiser, half_width
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.windows import Order
from revarb.errors import InputError, RevarbError, warn_user
from revarb.fitting.arx import fit_rows
from revarb.fitting.calibrate import HeldOutBands, cut_window
from revarb.fitting.calibration_rule import LEVEL, RunErrors, find_worst_quantile, select_measured
from revarb.fitting.held_out import LAST, HeldOut, compute_held_out_error, log_errors, mask_fold, simulate_blocks
from revarb.fitting.quarters import MIN_STD
from revarb.fitting.reference_errors import validate_linear
from revarb.models.fitted_arx import FittedARX
from revarb.models.prediction import align_record
from revarb.models.recipe import Status
from revarb.runtime.numerics import pad_rows
from revarb.selection.candidates import CandidateKey, describe_order
from revarb.selection.validation import CandidateResult
from revarb.simulation.narx_filtering import predict_horizons

HORIZONS = 20  # steps after a measured start for which a linear model has a band of its own
LONG_DELAY = 8  # from here on the lags of a nonlinear model would not reach over the dead time
CLEAR_GAIN = 0.1  # of direct feedthrough, as a share of the held-out error
UNINFORMATIVE = 0.5  # cold runs that are worse than this, in standard deviations of the output, tell little


def try_linear(orders: Sequence[tuple[str, Order]], held_out: HeldOut, quiet: bool = True) -> list[CandidateResult]:
    """The best linear model up to each of the largest orders; one whose runs all diverge is left out.

    The names are "" where none was given. With `quiet`, nothing is said about those that are left out.
    """
    tried: dict[CandidateKey, CandidateResult] = {}
    for name, largest in orders:
        started = time.perf_counter()
        try:
            found = validate_linear(held_out, largest)
        except RevarbError as error:  # a record too short for the delay, or no stable order
            if not quiet:
                warn_user(f"{name or 'ARX'} could not be fitted and is left out: {error}")
            continue
        key = CandidateKey(found.order, name=name or f"linear, {describe_order(found.order)}")
        result = CandidateResult(key, found.folds, found.errors, time.perf_counter() - started)
        tried.setdefault(key, result)
    return list(tried.values())


def find_delay(linear: Sequence[CandidateResult]) -> int:
    """The input delay of the nonlinear candidates, from that of the linear ones: 1, or where that is better 0.

    Another delay must be better by two standard errors. Delay 0 is direct feedthrough, with which no step can be made
    before its inputs are known: it must also be better by a tenth. A long dead time must be that of a model that
    follows the record. Short ones are within the lags of every candidate.
    """
    delays = {
        each.key.configuration.input_delay: each.errors
        for each in linear
        if isinstance(each.key.configuration, Order)
    }  # fmt: skip
    if 1 not in delays:
        return 1
    for delay, errors in sorted(delays.items(), reverse=True):
        finite = np.isfinite(errors).all() and np.isfinite(delays[1]).all()
        differences = log_errors(delays[1]) - log_errors(errors) if finite else np.zeros(len(errors))
        gain, deviation = differences.mean(), differences.std(ddof=1) / np.sqrt(len(differences))
        clear = compute_held_out_error(errors) < UNINFORMATIVE if delay >= LONG_DELAY else gain > CLEAR_GAIN
        if gain > 2.0 * deviation and clear:
            return delay
    return 1


def fit_linear_candidate(result: CandidateResult, held_out: HeldOut, records: Sequence[Series], seed: int) -> FittedARX:
    """Fit a linear candidate to all records, with bands from its held-out blocks."""
    assert isinstance(result.key.configuration, Order)
    prep = Preprocessor.from_records(records, result.key.configuration)
    std, horizon_std = calibrate_linear(result.folds, held_out, prep.scaling)
    found = FittedARX.from_records(records, prep, fit_rows(prep, records), std, seed)
    return replace(found, horizon_std=horizon_std)


def calibrate_linear(
    folds: Mapping[int, FittedARX], held_out: HeldOut, scaling: Standardiser
) -> tuple[Float64[np.ndarray, " Dy"], Float64[np.ndarray, "K Dy"]]:
    """Standard deviations of a linear model: of cold runs, and 1 … K steps after a measured start.

    Each is such that its 95 % band holds 95 % of the errors of the worst held-out block. Where a prediction from a
    measured start diverges, K is 0.
    """
    residual_std, ahead = _find_std(collect_cold_errors(folds, held_out, scaling)), _predict_blocks(folds, held_out)
    if any(np.isinf(errors).any() for errors in ahead):
        return residual_std, np.empty((0, len(residual_std)))
    by_horizon = ([errors[horizon] / scaling.y_std for errors in ahead] for horizon in range(HORIZONS))
    return residual_std, np.stack([_find_std(errors) for errors in by_horizon])


def fit_linear_without_last(order: Order, held_out: HeldOut) -> FittedARX | None:
    """Fit a linear model to the first two thirds of every record; None where an output does not move there."""
    records = mask_fold(held_out.records, held_out.last_blocks, LAST)
    try:
        prep = Preprocessor.from_records(records, order)
    except InputError:
        return None
    return FittedARX(prep, Status.CONVERGED, 0, np.ones(len(prep.output_names)), fit_rows(prep, records))


def collect_linear_bands(model: FittedARX, folds: Mapping[int, FittedARX], held_out: HeldOut) -> HeldOutBands:
    """The held-out runs of a linear model by the number of their block, with the variance of its band."""
    own = {
        fold: replace(
            each,
            residual_std=model.residual_std,
            horizon_std=model.horizon_std,
            preprocessor=replace(each.preprocessor, input_range=None, output_range=None),  # no wider band beyond
        )
        for fold, each in folds.items()
    }
    cold, ahead = {}, {}
    blocks, runs = (*held_out.blocks, *held_out.last_blocks), (*held_out.runs, *held_out.last_runs)
    for number, (block, run) in enumerate(zip(blocks, runs, strict=True)):
        if block.fold not in own:
            continue
        fold, record = own[block.fold], held_out.records[block.record]
        [mean] = simulate_blocks(fold, [run])
        check_finite("residuals", mean)
        error = (run.y - mean) / model.scaling.y_std
        cold[number] = select_measured(run.y, error, np.broadcast_to(model.residual_std**2, error.shape))
        window = cut_window(held_out.records, block, fold.preprocessor.skip)
        if block.fold != LAST and window is not None:
            simulate = partial(fold.simulate, start=window)
            y = record.y[block.rows]
            ahead[number] = _compare(simulate, record.u[block.rows], len(y), y, fold.scaling)
    return HeldOutBands(cold, ahead)


def _compare(
    simulate: Callable[..., Trajectory], u: np.ndarray, rows: int, y: np.ndarray, scaling: Standardiser
) -> RunErrors:
    path = simulate(u) if u.shape[1] else simulate(steps=rows)
    assert path.std is not None
    error, std = (y - path.mean[-len(y) :]) / scaling.y_std, path.std[-len(y) :] / scaling.y_std
    return select_measured(y, error, std**2)


def collect_cold_errors(folds: Mapping[int, Any], held_out: HeldOut, scaling: Standardiser) -> list[np.ndarray]:
    """Errors of the cold runs over the blocks of every fold by its model, in units of `scaling`."""
    errors = []
    for fold, model in folds.items():
        runs = [run for run in held_out.runs if run.fold == fold]
        simulated = zip(runs, simulate_blocks(model, runs), strict=True)
        errors += [(mean - run.y) / scaling.y_std for run, mean in simulated]
    return errors


def _predict_blocks(folds: Mapping[int, FittedARX], held_out: HeldOut) -> list[Float64[np.ndarray, "H _ Dy"]]:
    # Errors over every block, raw units, 1 … H steps ahead; infinite where a prediction diverges.
    errors = []
    for fold, model in folds.items():
        blocks = [block for block in held_out.blocks if block.fold == fold]
        for number in sorted({block.record for block in blocks}):
            record = held_out.records[number]
            error = _predict_horizons(model, record) - record.y
            errors += [error[:, block.rows] for block in blocks if block.record == number]
    return errors


def _predict_horizons(model: FittedARX, record: Series) -> Float64[np.ndarray, "H T Dy"]:
    start, u_bar, y = align_record(model.preprocessor, model.cold_start, record)
    padded = pad_rows(u_bar), pad_rows(y, np.nan)
    ahead = np.asarray(predict_horizons(model.chain, start, *padded, HORIZONS, model.step_variances))[:, : len(y)]
    return np.where(np.isfinite(ahead), model.scaling.raw_outputs(ahead), np.inf)


def _find_std(errors: Sequence[np.ndarray]) -> Float64[np.ndarray, " Dy"]:
    # An output that is measured in no block gets the standard deviation of its training values, 1.
    by_output = zip(*([column[np.isfinite(column)] for column in error.T] for error in errors), strict=True)
    stds = np.array([find_worst_quantile(each) for each in by_output]) / half_width(LEVEL)
    return np.maximum(np.where(np.isnan(stds), 1.0, stds), MIN_STD)
