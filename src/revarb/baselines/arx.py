"""ARX: linear autoregression with inputs, by least squares."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Float64

from revarb.baselines.held_out import (
    TAIL,
    compute_held_out_errors,
    estimate_residual_std,
    rms_error,
    select_rows_outside,
)
from revarb.baselines.narx import FittedNarx, NarxRows, build_narx_rows, require_complete
from revarb.config.lagged import Lagged
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import ComputationError, check_seed
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
            The training records, without missing outputs.
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
            If outputs are missing or the records are too short.
        ComputationError
            If the simulations of all orders diverge.
        """
        records = require_complete(train, "ARX")
        largest = Preprocessor.from_records(records, _limit_order(self.order_for(records[0].u.shape[1]), records))
        with defer_interrupts():
            order, residual_std = _choose_order(largest, records)
        prep = Preprocessor(largest.scaling, order, largest.input_names, largest.output_names, largest.dt)
        rows = build_narx_rows(prep, records)
        model = solve_least_squares(rows, np.ones(rows.x_hat.shape[1], dtype=bool), np.ones(len(rows.y), dtype=bool))
        return FittedARX(prep, Status.CONVERGED, check_seed(seed), residual_std, model)


@dataclass(frozen=True, eq=False, repr=False)
class FittedARX(FittedNarx[Linear]):
    """A trained ARX model of z-scored values; `order` is the chosen one. Its band is that of the training tail.

    Attributes
    ----------
    residual_std : array [outputs]
        Standard deviation of the held-out errors, z-scored.
    model : Linear
        Coefficients [regressors, outputs] and offset, z-scored.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.tanh(np.convolve(u, [0.0, 1.0, 0.5])[:60])
    >>> model = revarb.ARX(lags=2, input_lags=2).fit(revarb.Series(u, y))
    >>> model
    FittedARX(inputs ('u',), outputs ('y',), status='converged')
    >>> model.simulate(u)
    Trajectory(60 rows, outputs ('y',), method='residuals', start='cold')
    """


def solve_least_squares(rows: NarxRows, columns: Bool[np.ndarray, " D"], used: Bool[np.ndarray, " R"]) -> Linear:
    """Fit the chosen columns on the used rows; the other columns get zero, so that all orders have the same shape."""
    design = np.column_stack([rows.x_hat[used][:, columns], np.ones(int(used.sum()))])
    solution = np.linalg.lstsq(design, rows.y[used])[0]
    coefficients = np.zeros((rows.x_hat.shape[1], rows.y.shape[1]))
    coefficients[columns] = solution[:-1]
    return Linear(coefficients, solution[-1])


def _limit_order(order: Order, records: Sequence[Series]) -> Order:
    # At most a quarter of the shortest record.
    limit = max(1, min(len(record) for record in records) // 4 - order.input_delay)
    return Order(min(order.lags, limit), min(order.input_lags, limit), order.input_delay)


def _choose_order(prep: Preprocessor, records: Sequence[Series]) -> tuple[Order, Float64[np.ndarray, " Dy"]]:
    # The order whose fit to the head of the records simulates their tail best, and its residual std there.
    rows = build_narx_rows(prep, records)
    head = select_rows_outside(prep, [len(record) for record in records], TAIL)
    states, inputs = range(1, prep.order.lags + 1), range(1, prep.order.input_lags + 1) or [0]
    orders = [Order(a, b, prep.order.input_delay) for a, b in product(states, inputs)]
    errors = _compute_tail_errors(
        prep, records, [solve_least_squares(rows, _select_columns(prep, order), head) for order in orders]
    )
    rms_errors = [rms_error(tail) for tail in errors]
    best = int(np.argmin(rms_errors))
    if not np.isfinite(rms_errors[best]):
        raise ComputationError(
            f"the simulations of all ARX models with up to {prep.order.lags} past outputs and {prep.order.input_lags} "
            "past inputs diverged; difference the record or use fewer lags"
        )
    return orders[best], estimate_residual_std(errors[best])


def _select_columns(prep: Preprocessor, order: Order) -> Bool[np.ndarray, " D"]:
    # Regressors are sorted newest first: outputs, then inputs.
    outputs = np.repeat(np.arange(prep.order.lags) < order.lags, len(prep.output_names))
    inputs = np.repeat(np.arange(prep.order.input_lags) < order.input_lags, len(prep.input_names))
    return np.concatenate([outputs, inputs])


def _compute_tail_errors(prep: Preprocessor, records: Sequence[Series], models: Sequence[Linear]) -> list[np.ndarray]:
    # All orders have the same shape: one batched run simulates them all.
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *models)
    simulate = jax.vmap(
        lambda model, z: run_mean_cold(Chain((model,), None, prep.order.lags), prep.order, z), (0, None)
    )
    runs = [np.asarray(simulate(stacked, prep.scaling.inputs(record.u))) for record in records]
    return [compute_held_out_errors(prep, records, [run[k] for run in runs], TAIL) for k in range(len(models))]
