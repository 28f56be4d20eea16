"""Linear models on held-out stretches: which order and which input delay simulate best what was left out of the fit."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.gp.layer import Linear
from revarb.training.linear_fit import list_orders, mark_complete, select_columns, simulate_linear
from revarb.training.narx_rows import NarxRows, build_narx_rows
from revarb.training.one_standard_error import find_simplest
from revarb.training.stretches import FOLDS, Stretch, mask_fold

MIN_ROWS_PER_COEFFICIENT = 10  # of a linear model; orders with more coefficients are not tried


class LinearCandidate(NamedTuple):
    """The best order with one input delay: a model per fold, and the errors of their cold runs on what they missed."""

    order: Order
    folds: tuple[Linear, ...]
    preprocessors: tuple[Preprocessor, ...]  # of the folds: a fold is scaled by what it has
    errors: Float64[np.ndarray, " S"]  # root mean square of every stretch, z-scored by the whole training data


def score_linear(records: Sequence[Series], stretches: Sequence[Stretch], largest: Order) -> LinearCandidate:
    """Fit every order up to the largest one without each fold, and keep the order whose held-out runs are best."""
    scaling = Standardiser.from_records(records)
    orders = _list_small_orders(records, largest)
    folds = [_fit_fold(mask_fold(records, stretches, fold), largest, orders) for fold in range(FOLDS)]
    errors = np.full((len(orders), len(stretches)), np.inf)
    for fold, fitted in enumerate(folds):
        runs = simulate_linear(fitted.preprocessor, records, fitted.models)
        for number, stretch in enumerate(stretches):
            if stretch.fold == fold:
                errors[:, number] = [
                    measure_stretch(fitted.preprocessor, scaling, run[stretch.record], records, stretch) for run in runs
                ]
    best = find_simplest(
        errors, [order.lags * len(scaling.y_mean) + order.input_lags * len(scaling.u_mean) for order in orders]
    )
    return LinearCandidate(
        orders[best],
        tuple(fitted.models[best] for fitted in folds),
        tuple(fitted.preprocessor for fitted in folds),
        errors[best],
    )


def _list_small_orders(records: Sequence[Series], largest: Order) -> list[Order]:
    # Orders with too many coefficients for the records fit the noise.
    rows, outputs, inputs = sum(len(record) for record in records), records[0].y.shape[1], records[0].u.shape[1]
    most = max(outputs + inputs, rows // MIN_ROWS_PER_COEFFICIENT)
    return [order for order in list_orders(largest) if order.lags * outputs + order.input_lags * inputs <= most]


class _FoldFit(NamedTuple):
    """Linear models of all orders, fitted without one fold; all have the shape of the largest order."""

    preprocessor: Preprocessor
    models: list[Linear]


def _fit_fold(masked: Sequence[Series], largest: Order, orders: Sequence[Order]) -> _FoldFit:
    prep = Preprocessor.from_records(masked, largest)
    rows = build_narx_rows(prep, masked)
    reduced = _reduce(rows, mark_complete(rows))
    return _FoldFit(prep, [_solve(reduced, select_columns(prep, order)) for order in orders])


def _reduce(rows: NarxRows, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Least squares only needs the triangular factor of [x̂ 1 y]: hundreds of orders are then solved with few rows.
    table = np.column_stack([rows.x_hat[used], np.ones(int(used.sum())), rows.y[used]])
    triangular = np.linalg.qr(table, mode="r")
    outputs = rows.y.shape[1]
    return triangular[:, :-outputs], triangular[:, -outputs:]


def _solve(reduced: tuple[np.ndarray, np.ndarray], columns: np.ndarray) -> Linear:
    design, targets = reduced
    solution = np.linalg.lstsq(design[:, [*np.flatnonzero(columns), -1]], targets)[0]
    coefficients = np.zeros((len(columns), targets.shape[1]))
    coefficients[columns] = solution[:-1]
    return Linear(coefficients, solution[-1])


def measure_stretch(
    prep: Preprocessor, scaling: Standardiser, run: Float64[np.ndarray, "T Dy"], records: Sequence[Series],
    stretch: Stretch,
) -> float:  # fmt: skip
    """Root mean square error of a z-scored run on a stretch, in standard deviations of the whole training data.

    Infinite where the run diverged; NaN where nothing was measured.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        mean = prep.scaling.raw_outputs(run[stretch.rows])
        measured = np.isfinite(records[stretch.record].y[stretch.rows])
        squares = (((mean - records[stretch.record].y[stretch.rows]) / scaling.y_std) ** 2)[measured]
        rms = float(np.sqrt(np.mean(squares))) if len(squares) else float("nan")
    return rms if np.isfinite(rms) or not len(squares) else float("inf")
