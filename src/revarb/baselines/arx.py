"""ARX: the linear model, y_i from past outputs and inputs by least squares."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Float64

from revarb.baselines.held_out import TAIL, held_out_errors, residual_deviation, rms_error, rows_outside
from revarb.baselines.narx import FittedNarx, NarxRows, narx_rows, require_complete
from revarb.config.lagged import Lagged
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import InputError, check_seed
from revarb.optim.status import Status
from revarb.runtime.interrupts import defer_interrupts
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.simulation.chain import Chain
from revarb.simulation.mean import run_mean_cold


class Linear(eqx.Module):
    """y = x̂ · coefficients + offset."""

    coefficients: Float[AnyArray, "*B D Dy"]
    offset: Float[AnyArray, "*B Dy"]

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.offset.shape[-1]

    def mean(self, x: Float[AnyArray, "N D"]) -> Float[AnyArray, "N Dy"]:
        """The linear prediction."""
        return x @ self.coefficients + self.offset


@dataclass(frozen=True)
class ARX(Lagged):
    """Linear autoregression with inputs. `lags` and `input_lags` are the largest orders tried, fewer on a short record.

    Every pair of orders is fitted to the first part of the training data; the pair that simulates the rest best is
    taken and fitted to all of it.
    """

    @with_numerics
    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedARX":
        """Least squares for every order; there is nothing random in it."""
        records = require_complete(train, "ARX")
        largest = Preprocessor.from_records(records, _limit_order(self.order_for(records[0].u.shape[1]), records))
        with defer_interrupts():
            order, spread = _best_order(largest, records)
        prep = Preprocessor(largest.scaling, order, largest.input_names, largest.output_names, largest.dt)
        rows = narx_rows(prep, records)
        model = least_squares(rows, np.ones(rows.x_hat.shape[1], dtype=bool), np.ones(len(rows.y), dtype=bool))
        return FittedARX(prep, Status.CONVERGED, check_seed(seed), spread, model)


@dataclass(frozen=True, eq=False, repr=False)
class FittedARX(FittedNarx[Linear]):
    """A trained linear model of z-scored values; `lags` has the chosen order. Its residuals are the training tail's."""


def least_squares(rows: NarxRows, columns: Bool[np.ndarray, " D"], used: Bool[np.ndarray, " R"]) -> Linear:
    """Fit the chosen columns on the used rows; the other columns get zero, so that all orders have one shape."""
    design = np.column_stack([rows.x_hat[used][:, columns], np.ones(int(used.sum()))])
    solution = np.linalg.lstsq(design, rows.y[used])[0]
    coefficients = np.zeros((rows.x_hat.shape[1], rows.y.shape[1]))
    coefficients[columns] = solution[:-1]
    return Linear(coefficients, solution[-1])


def _limit_order(order: Order, records: Sequence[Series]) -> Order:
    # An order that no more than a quarter of the shortest record goes into.
    most = max(1, min(len(record) for record in records) // 4 - order.input_delay)
    return Order(min(order.lags, most), min(order.input_lags, most), order.input_delay)


def _best_order(prep: Preprocessor, records: Sequence[Series]) -> tuple[Order, Float64[np.ndarray, " Dy"]]:
    # The order whose fit to the head of the training part simulates its tail best, and how far off it is there.
    rows = narx_rows(prep, records)
    head = rows_outside(prep, [len(record) for record in records], TAIL)
    states, inputs = range(1, prep.order.lags + 1), range(1, prep.order.input_lags + 1) or [0]
    orders = [Order(a, b, prep.order.input_delay) for a, b in product(states, inputs)]
    errors = _tail_errors(prep, records, [least_squares(rows, _columns(prep, order), head) for order in orders])
    sizes = [rms_error(each) for each in errors]
    best = int(np.argmin(sizes))
    if not np.isfinite(sizes[best]):
        raise InputError(
            f"no ARX model of up to {prep.order.lags} outputs and {prep.order.input_lags} inputs back simulates the "
            "training data without running away; difference the record or use fewer lags"
        )
    return orders[best], residual_deviation(errors[best])


def _columns(prep: Preprocessor, order: Order) -> Bool[np.ndarray, " D"]:
    # Regressors stand newest first: outputs, then inputs.
    outputs = np.repeat(np.arange(prep.order.lags) < order.lags, len(prep.output_names))
    inputs = np.repeat(np.arange(prep.order.input_lags) < order.input_lags, len(prep.input_names))
    return np.concatenate([outputs, inputs])


def _tail_errors(prep: Preprocessor, records: Sequence[Series], tries: Sequence[Linear]) -> list[np.ndarray]:
    # All orders have one shape, so one compiled run takes them all.
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *tries)
    run = jax.vmap(lambda model, z: run_mean_cold(Chain((model,), None, prep.order.lags), prep.order, z), (0, None))
    runs = [np.asarray(run(stacked, prep.scaling.inputs(record.u))) for record in records]
    return [held_out_errors(prep, records, [each[k] for each in runs], TAIL) for k in range(len(tries))]
