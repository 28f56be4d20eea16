"""ARX models by least squares, their order chosen by free simulation of held-out samples; rows of NARX models."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, as_records
from revarb.data.windows import Order, later_states, regressors
from revarb.errors import ComputationError, InputError, check_seed
from revarb.fitting.free_run import run_from_rest
from revarb.fitting.quarters import (
    compute_quarter_errors,
    estimate_residual_std,
    find_measured_quarter,
    mark_measured,
    rms_error,
    select_rows_outside,
)
from revarb.gp.layer import Linear
from revarb.models.configuration import Lagged
from revarb.models.fitted_arx import FittedARX
from revarb.models.recipe import Status
from revarb.runtime.interrupts import defer_interrupts
from revarb.runtime.machine import on_host
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import Chain

LAGS = (*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)  # numbers of lags that are tried


class NarxRows(NamedTuple):
    """Training rows, z-scored, records stacked: measured past outputs and inputs, and the output that follows them."""

    x_hat: Float64[np.ndarray, "R D"]
    y: Float64[np.ndarray, "R Dy"]


def build_narx_rows(prep: Preprocessor, records: Sequence[Series]) -> NarxRows:
    """Build the rows of a NARX model: those of a first hidden layer whose states are the measured outputs."""
    blocks = prep.scale_records(records)
    y, u_bar = (np.concatenate(parts) for parts in ([block.y for block in blocks], [block.u_bar for block in blocks]))
    lags, lengths = prep.order.lags, [len(block.y) for block in blocks]
    x_hat = regressors([y], u_bar, lags, lengths)[0]
    return NarxRows(np.asarray(x_hat), np.asarray(later_states(y, lags, lengths)))


def mark_complete(rows: NarxRows) -> Bool[np.ndarray, " R"]:
    """Mark the rows without a missing value, neither as target nor among the regressors."""
    return np.isfinite(rows.x_hat.sum(axis=1) + rows.y.sum(axis=1))


def simulate_records(prep: Preprocessor, chain: Chain, records: Sequence[Series]) -> list[Float64[np.ndarray, "_ Dy"]]:
    """Simulate the mean of every training record freely from rest; z-scored."""
    return [np.asarray(run_from_rest(chain, prep, prep.scaling.inputs(record.u))) for record in records]


def fit_linear(prep: Preprocessor, records: Sequence[Series]) -> FittedARX:
    """Fit every order up to that of the preprocessor to the first part of the records; take the best on the rest.

    The chosen order is then fitted to all rows. Rows with a missing output, as target or as regressor, are left out.
    """
    with defer_interrupts():
        order, residual_std = _choose_order(prep, records)
    chosen = replace(prep, order=order)
    return FittedARX(chosen, Status.CONVERGED, 0, residual_std, fit_rows(chosen, records))


def fit_rows(prep: Preprocessor, records: Sequence[Series]) -> Linear:
    """Fit a model of the preprocessor's order to the complete rows."""
    rows = build_narx_rows(prep, records)
    used = mark_complete(rows)
    if not used.any():
        raise InputError("no row of the records has all its past outputs measured; fill the gaps")
    return solve_least_squares(rows, np.ones(rows.x_hat.shape[1], dtype=bool), used)


def solve_least_squares(rows: NarxRows, columns: Bool[np.ndarray, " D"], used: Bool[np.ndarray, " R"]) -> Linear:
    """Fit the chosen columns on the used rows; the other columns get zero, so that all orders have the same shape."""
    return solve_columns(np.column_stack([rows.x_hat[used], np.ones(int(used.sum()))]), rows.y[used], columns)


def solve_columns(
    design: Float64[np.ndarray, "R _"], targets: Float64[np.ndarray, "R Dy"], columns: Bool[np.ndarray, " D"]
) -> Linear:
    """Fit the chosen columns of a design matrix, whose last column is that of the offset."""
    solution = np.linalg.lstsq(design[:, [*np.flatnonzero(columns), -1]], targets)[0]
    coefficients = np.zeros((len(columns), targets.shape[1]))
    coefficients[columns] = solution[:-1]
    return Linear(coefficients, solution[-1])


def limit_order(order: Order, records: Sequence[Series]) -> Order:
    """The order with at most as many lags as a quarter of the shortest record has samples."""
    limit = max(1, min(len(record) for record in records) // 4 - order.input_delay)
    return Order(min(order.lags, limit), min(order.input_lags, limit), order.input_delay)


def _choose_order(prep: Preprocessor, records: Sequence[Series]) -> tuple[Order, Float64[np.ndarray, " Dy"]]:
    # The order whose fit to the head of the records simulates their tail best, and its residual std there. Where the
    # tail is not measured, another piece takes its place.
    rows, piece = build_narx_rows(prep, records), find_measured_quarter(prep, records)
    head = select_rows_outside(prep, [len(record) for record in records], piece) & mark_complete(rows)
    if not head.any():
        raise InputError("no row of the records has all its past outputs measured; use fewer lags, or fill the gaps")
    orders = list_orders(prep.order)
    runs = simulate_linear(
        prep, records, [solve_least_squares(rows, select_columns(prep, order), head) for order in orders]
    )
    errors = [compute_quarter_errors(prep, records, run, piece) for run in runs]
    measured = mark_measured(prep, records, [piece])
    rms_errors = [rms_error(tail[measured]) for tail in errors]
    best = int(np.argmin(rms_errors))
    if not np.isfinite(rms_errors[best]):
        raise ComputationError(
            f"the simulations of all ARX models with up to {prep.order.lags} past outputs and {prep.order.input_lags} "
            "past inputs diverged; difference the record or use fewer lags"
        )
    return orders[best], estimate_residual_std(errors[best])


def list_orders(largest: Order) -> list[Order]:
    """All orders up to the largest one; beyond ten lags not every number, which would take too long."""
    states = [lags for lags in LAGS if lags <= largest.lags]
    inputs = [lags for lags in LAGS if lags <= largest.input_lags] or [0]
    return [Order(a, b, largest.input_delay) for a, b in product(states, inputs)]


def select_columns(prep: Preprocessor, order: Order) -> Bool[np.ndarray, " D"]:
    """Mark the regressors of a smaller order; they are sorted newest first: outputs, then inputs."""
    outputs = np.repeat(np.arange(prep.order.lags) < order.lags, len(prep.output_names))
    inputs = np.repeat(np.arange(prep.order.input_lags) < order.input_lags, len(prep.input_names))
    return np.concatenate([outputs, inputs])


@on_host()
def simulate_linear(
    prep: Preprocessor, records: Sequence[Series], models: Sequence[Linear]
) -> list[list[Float64[np.ndarray, "_ Dy"]]]:
    """Simulate all models on all records from rest, z-scored; they have the same shape: one batched run."""
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *models)
    simulate = jax.vmap(lambda model, z: run_from_rest(Chain((model,), None, prep.order.lags), prep, z), (0, None))
    runs = [np.asarray(simulate(stacked, prep.scaling.inputs(record.u))) for record in records]
    return [[run[k] for run in runs] for k in range(len(models))]


@dataclass(frozen=True)
class ARX(Lagged):
    """Linear autoregression with inputs (ARX), its order chosen on the training records.

    Parameters
    ----------
    lags : int
        The largest number of past outputs that is tried; less on a short record.
    input_lags : int
        The largest number of past inputs that is tried; less on a short record.
    input_delay : int
        Age of the newest input: 1 by default, 0 for direct feedthrough, k for a dead time of k samples.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.convolve(u, [0.0, 0.5, 0.3])[:60]
    >>> model = revarb.ARX(lags=2, input_lags=3).fit(revarb.Series(u, y))
    >>> model.order.input_lags
    2
    >>> bool(np.allclose(model.simulate(u).mean[5:, 0], y[5:]))
    True
    """

    @with_numerics
    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedARX":
        """Fit every order by least squares to the first part of the records; keep the one that simulates the rest best.

        The chosen order is then fitted to all training rows.

        Parameters
        ----------
        train : Series or list of Series
            The training records. Rows with a missing output, as target or as regressor, are left out.
        seed : int
            Not used: nothing is random.
        progress : bool
            Not used.

        Returns
        -------
        FittedARX

        Raises
        ------
        InputError
            If the records are too short, or no row is complete.
        ComputationError
            If the simulations of all orders diverge.
        """
        seed, records = check_seed(seed), as_records(train)
        order = limit_order(self.order_for(records[0].u.shape[1]), records)
        fitted = fit_linear(Preprocessor.from_records(records, order), records)
        return FittedARX.from_records(records, fitted.preprocessor, fitted.model, fitted.residual_std, seed)
