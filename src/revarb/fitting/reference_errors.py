"""Errors on held-out blocks to compare a model with: of the training mean, and of linear models of the best order.

Candidates are compared by the one-standard-error rule: of those that cannot be told from the best one, the simplest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float64
from numpy.lib.stride_tricks import sliding_window_view

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import ComputationError, InputError, RevarbError
from revarb.fitting.arx import NarxRows, build_narx_rows, list_orders, mark_complete, select_columns, solve_columns
from revarb.fitting.free_run import cut_cold_runs
from revarb.fitting.held_out import (
    FOLDS,
    HeldOut,
    compute_held_out_error,
    log_errors,
    mask_fold,
    measure_block_errors,
    measure_rms,
    simulate_cold,
    unscale_run,
)
from revarb.gp.layer import Linear
from revarb.models.fitted_arx import FittedARX
from revarb.models.recipe import Status
from revarb.simulation.chain import Chain

MIN_ROWS_PER_COEFFICIENT = 10  # of a linear model; orders with more coefficients are not tried


def measure_mean(held_out: HeldOut) -> float:
    """The held-out error of the training mean: every block is predicted by the mean of the other folds."""
    records, blocks = held_out.records, held_out.blocks
    means = [Standardiser.from_records(mask_fold(records, blocks, fold)).y_mean for fold in range(FOLDS)]
    errors = [
        measure_rms(np.broadcast_to(means[run.fold], run.y.shape), run, held_out.scaling) for run in held_out.runs
    ]
    return compute_held_out_error(np.array(errors))


def measure_linear(held_out: HeldOut, largest: Order) -> float | None:
    """The held-out error of ARX models of the best order; None where none can be fitted or its runs diverge."""
    try:
        error = compute_held_out_error(validate_linear(held_out, largest).errors)
    except RevarbError:
        return None
    return error if np.isfinite(error) else None


class LinearValidation(NamedTuple):
    """The order that was taken: a model without each fold, and their errors on every block."""

    order: Order
    folds: Mapping[int, FittedARX]  # in the shape of the largest order that was used
    errors: Float64[np.ndarray, " B"]


def validate_linear(held_out: HeldOut, largest: Order) -> LinearValidation:
    """Fit every order up to the largest one without each fold; take the smallest that is as good as the best.

    Where gaps leave few complete rows, the largest order is reduced first.
    """
    records = held_out.records
    largest = limit_to_gaps(records, largest)
    orders = list_small_orders(records, largest)
    fits = [_fit_fold(mask_fold(records, held_out.blocks, fold), largest, orders) for fold in range(FOLDS)]
    errors = np.full((len(orders), len(held_out.runs)), np.inf)
    for fold, (prep, models) in enumerate(fits):
        inside = [number for number, run in enumerate(held_out.runs) if run.fold == fold]
        if inside:
            errors[:, inside] = _measure_orders(prep, models, held_out, inside)
    measured = ~np.isnan(errors).any(axis=0)
    best = find_simplest(errors[:, measured], [count_coefficients(order, held_out.scaling) for order in orders])
    folds = {
        fold: FittedARX(prep, Status.CONVERGED, 0, np.ones(len(prep.output_names)), models[best])
        for fold, (prep, models) in enumerate(fits)
    }
    return LinearValidation(orders[best], folds, measure_block_errors(folds, held_out))


def count_coefficients(order: Order, scaling: Standardiser) -> int:
    """Number of coefficients of one output."""
    return order.lags * len(scaling.y_mean) + order.input_lags * len(scaling.u_mean)


def list_small_orders(records: Sequence[Series], largest: Order) -> list[Order]:
    """The orders that have few enough coefficients for the records: more would fit the noise."""
    rows, outputs, inputs = count_complete(records, largest.lags), records[0].y.shape[1], records[0].u.shape[1]
    most = max(outputs + inputs, rows // MIN_ROWS_PER_COEFFICIENT)
    return [order for order in list_orders(largest) if order.lags * outputs + order.input_lags * inputs <= most]


def count_complete(records: Sequence[Series], lags: int) -> int:
    """Number of samples without a gap, neither in themselves nor in the past outputs before them in their record."""
    missing = [np.pad(np.isnan(record.y).any(axis=1), (lags, 0)) for record in records]
    return sum(int(np.sum(~sliding_window_view(each, lags + 1).any(axis=1))) for each in missing)


def limit_to_gaps(records: Sequence[Series], largest: Order) -> Order:
    """The order with so few lags that gaps leave enough rows to fit it; the same for records without gaps.

    Enough are half of the rows that are complete for one lag, and ten per coefficient.
    """
    if not any(record.missing for record in records):
        return largest
    scaling, most = Standardiser.from_records(records), count_complete(records, 1)
    while largest.lags > 1:
        rows = count_complete(records, largest.lags)
        if 2 * rows < most:
            largest = replace(largest, lags=largest.lags // 2)
        elif rows < MIN_ROWS_PER_COEFFICIENT * count_coefficients(largest, scaling):
            largest = replace(largest, lags=largest.lags // 2, input_lags=(largest.input_lags + 1) // 2)
        else:
            break
    return largest


def _fit_fold(masked: Sequence[Series], largest: Order, orders: Sequence[Order]) -> tuple[Preprocessor, list[Linear]]:
    # All models have the shape of the largest order.
    prep = Preprocessor.from_records(masked, largest)
    rows = build_narx_rows(prep, masked)
    used = mark_complete(rows)
    if not used.any():
        raise InputError("no row of the records has all its past outputs measured; fill the gaps")
    reduced = _reduce(rows, used)
    return prep, [solve_columns(*reduced, select_columns(prep, order)) for order in orders]


def _reduce(rows: NarxRows, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Least squares only needs the triangular factor of [x̂ 1 y]: hundreds of orders are then solved with few rows.
    table = np.column_stack([rows.x_hat[used], np.ones(int(used.sum())), rows.y[used]])
    triangular = np.asarray(np.linalg.qr(table, mode="r"))
    outputs = rows.y.shape[1]
    return triangular[:, :-outputs], triangular[:, -outputs:]


def _measure_orders(
    prep: Preprocessor, models: Sequence[Linear], held_out: HeldOut, inside: Sequence[int]
) -> Float64[np.ndarray, "C _"]:
    # All models and runs side by side, and not only those of the fold: the folds share one compiled run.
    runs, scaling = held_out.runs, held_out.scaling
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *models)
    u_bar = cut_cold_runs(prep, [run.record for run in runs]).u_bar
    simulate = jax.vmap(lambda model: simulate_cold(Chain((model,), None, prep.order.lags), u_bar))
    errors = np.empty((len(models), len(inside)))
    for each, simulated in zip(errors, np.asarray(simulate(stacked)), strict=True):
        blocks = [unscale_run(prep, simulated[:, number], runs[number].record) for number in inside]
        each[:] = [measure_rms(y[-len(runs[n].y) :], runs[n], scaling) for y, n in zip(blocks, inside, strict=True)]
    return errors


def compare_with_best(errors: Float64[np.ndarray, "C B"]) -> tuple[int, np.ndarray, np.ndarray]:
    """The best candidate; for each one the mean of log(error / error of the best), and its standard error.

    The errors are compared block by block: what makes a block hard for all candidates drops out.
    """
    logs = log_errors(errors)
    scores = logs.mean(axis=1)
    best = int(np.argmin(scores))
    if not np.isfinite(scores[best]):
        raise ComputationError("the held-out simulations of all candidates diverged")
    with np.errstate(invalid="ignore"):
        differences = logs - logs[best]
        count = errors.shape[1]
        deviations = differences.std(axis=1, ddof=1) / np.sqrt(count) if count > 1 else np.zeros(len(errors))
    return best, differences.mean(axis=1), np.where(np.isfinite(deviations), deviations, 0.0)


def find_simplest(errors: Float64[np.ndarray, "C B"], complexity: Sequence[Any]) -> int:
    """The simplest candidate whose errors are within one standard error of those of the best one."""
    best, differences, deviations = compare_with_best(errors)
    close = [number for number in range(len(errors)) if number == best or differences[number] <= deviations[number]]
    return min(close, key=lambda number: (complexity[number], differences[number]))
