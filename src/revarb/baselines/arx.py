"""ARX: the linear model, y_i from past outputs and inputs by least squares."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Float64

from revarb.baselines.held_out import TAIL, error_size, held_out_errors, residual_spread, rows_apart
from revarb.baselines.narx import FittedNarx, NarxRows, complete_records, narx_rows
from revarb.config.lagged import Lagged
from revarb.data.preprocessor import Frame
from revarb.data.series import Series
from revarb.data.windows import Lags
from revarb.errors import InputError, check_seed
from revarb.optim.status import Status
from revarb.runtime.interrupts import delayed_interrupts
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.simulation.chain import Chain
from revarb.simulation.mean import cold_mean


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
        records = complete_records(train, "ARX")
        largest = Frame.of(records, _affordable(self.lags_for(records[0].u.shape[1]), records))
        with delayed_interrupts():
            order, spread = _best_order(largest, records)
        frame = Frame(largest.scaling, order, largest.input_names, largest.output_names, largest.dt)
        rows = narx_rows(frame, records)
        model = least_squares(rows, np.ones(rows.x_hat.shape[1], dtype=bool), np.ones(len(rows.y), dtype=bool))
        return FittedARX(frame, Status.CONVERGED, check_seed(seed), spread, model)


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


def _affordable(lags: Lags, records: Sequence[Series]) -> Lags:
    # An order that no more than a quarter of the shortest record goes into.
    most = max(1, min(len(record) for record in records) // 4 - lags.delay)
    return Lags(min(lags.states, most), min(lags.inputs, most), lags.delay)


def _best_order(frame: Frame, records: Sequence[Series]) -> tuple[Lags, Float64[np.ndarray, " Dy"]]:
    # The order whose fit to the head of the training part simulates its tail best, and how far off it is there.
    rows = narx_rows(frame, records)
    head = rows_apart(frame, [len(record) for record in records], TAIL)
    states, inputs = range(1, frame.lags.states + 1), range(1, frame.lags.inputs + 1) or [0]
    orders = [Lags(a, b, frame.lags.delay) for a, b in product(states, inputs)]
    errors = _tail_errors(frame, records, [least_squares(rows, _columns(frame, order), head) for order in orders])
    sizes = [error_size(each) for each in errors]
    best = int(np.argmin(sizes))
    if not np.isfinite(sizes[best]):
        raise InputError(
            f"no ARX model of up to {frame.lags.states} outputs and {frame.lags.inputs} inputs back simulates the "
            "training data without running away; difference the record or use fewer lags"
        )
    return orders[best], residual_spread(errors[best])


def _columns(frame: Frame, order: Lags) -> Bool[np.ndarray, " D"]:
    # Regressors stand newest first: outputs, then inputs.
    outputs = np.repeat(np.arange(frame.lags.states) < order.states, len(frame.output_names))
    inputs = np.repeat(np.arange(frame.lags.inputs) < order.inputs, len(frame.input_names))
    return np.concatenate([outputs, inputs])


def _tail_errors(frame: Frame, records: Sequence[Series], tries: Sequence[Linear]) -> list[np.ndarray]:
    # All orders have one shape, so one compiled run takes them all.
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *tries)
    run = jax.vmap(lambda model, z: cold_mean(Chain((model,), None, frame.lags.states), frame.lags, z), (0, None))
    runs = [np.asarray(run(stacked, frame.scaling.inputs(record.u))) for record in records]
    return [held_out_errors(frame, records, [each[k] for each in runs], TAIL) for k in range(len(tries))]
