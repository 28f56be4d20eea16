"""Linear models on held-out stretches: which order simulates best what was left out of its fit."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import InputError
from revarb.gp.layer import Linear
from revarb.simulation.chain import Chain
from revarb.training.free_run import cut_cold_runs
from revarb.training.linear_fit import list_orders, select_columns
from revarb.training.narx_rows import NarxRows, build_narx_rows, mark_complete
from revarb.training.one_standard_error import find_simplest
from revarb.training.segments import Segment, measure_error, simulate_cold
from revarb.training.stretches import FOLDS, Stretch, mask_fold

MIN_ROWS_PER_COEFFICIENT = 10  # of a linear model; orders with more coefficients are not tried


class LinearCandidate(NamedTuple):
    """The order that was taken: a model per fold, and the errors of their cold runs on what they missed."""

    order: Order
    folds: tuple[Linear, ...]  # in the shape of the largest order that was used
    preprocessors: tuple[Preprocessor, ...]  # of the folds: a fold is scaled by what it has
    errors: Float64[np.ndarray, " S"]  # of every stretch, z-scored by the whole training data


def score_linear(
    records: Sequence[Series], stretches: Sequence[Stretch], segments: Sequence[Segment], largest: Order
) -> LinearCandidate:
    """Fit every order up to the largest one without each fold; take the smallest that is as good as the best.

    Where gaps leave few complete rows, the largest order is reduced first.
    """
    largest = limit_to_gaps(records, largest)
    scaling, orders = Standardiser.from_records(records), list_small_orders(records, largest)
    folds = [_fit_fold(mask_fold(records, stretches, fold), largest, orders) for fold in range(FOLDS)]
    errors = np.full((len(orders), len(segments)), np.inf)
    for fold, (prep, models) in enumerate(folds):
        inside = [number for number, segment in enumerate(segments) if segment.fold == fold]
        if inside:
            errors[:, inside] = _measure(prep, models, scaling, segments, inside)
    best = find_simplest(errors, [count_coefficients(order, scaling) for order in orders])
    return LinearCandidate(
        orders[best], tuple(models[best] for _, models in folds), tuple(prep for prep, _ in folds), errors[best]
    )


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
    return sum(_count_complete(np.asarray(np.isnan(record.y).any(axis=1)), lags) for record in records)


def _count_complete(missing: np.ndarray, lags: int) -> int:
    before = np.concatenate([[0], np.cumsum(missing)])  # number of gaps before every sample
    ends = np.arange(1, len(before))
    return int(np.sum(before[ends] == before[np.maximum(ends - 1 - lags, 0)]))


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
    return prep, [_solve(reduced, select_columns(prep, order)) for order in orders]


def _reduce(rows: NarxRows, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Least squares only needs the triangular factor of [x̂ 1 y]: hundreds of orders are then solved with few rows.
    table = np.column_stack([rows.x_hat[used], np.ones(int(used.sum())), rows.y[used]])
    triangular = np.asarray(np.linalg.qr(table, mode="r"))
    outputs = rows.y.shape[1]
    return triangular[:, :-outputs], triangular[:, -outputs:]


def _solve(reduced: tuple[np.ndarray, np.ndarray], columns: np.ndarray) -> Linear:
    design, targets = reduced
    solution = np.linalg.lstsq(design[:, [*np.flatnonzero(columns), -1]], targets)[0]
    coefficients = np.zeros((len(columns), targets.shape[1]))
    coefficients[columns] = solution[:-1]
    return Linear(coefficients, solution[-1])


def _measure(
    prep: Preprocessor,
    models: Sequence[Linear],
    scaling: Standardiser,
    segments: Sequence[Segment],
    inside: Sequence[int],
) -> Float64[np.ndarray, "C _"]:
    # All models and segments side by side, and not only those of the fold: the folds share one compiled run.
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *models)
    u_bar = cut_cold_runs(prep, [segment.record for segment in segments]).u_bar
    simulate = jax.vmap(lambda model: simulate_cold(Chain((model,), None, prep.order.lags), u_bar))
    simulated = np.asarray(simulate(stacked))
    return np.array([
        [measure_error(prep, scaling, run[:, number], segments[number]) for number in inside]
        for run in simulated
    ])  # fmt: skip
