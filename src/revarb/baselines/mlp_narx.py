"""MLP-NARX: one hidden tanh layer on measured lags, trained one step ahead, simulated free."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64, Key

from revarb.baselines.held_out import PIECES, held_out_errors, residual_deviation, rms_error, rows_outside
from revarb.baselines.narx import FittedNarx, NarxRows, narx_rows, require_complete, simulated_records
from revarb.config.lagged import Lagged
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.errors import InputError, check_integer, check_number, check_seed
from revarb.optim.lbfgs import Optimum, maximise_tree
from revarb.optim.status import Status
from revarb.runtime.interrupts import defer_interrupts
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.runtime.progress import progress_bar
from revarb.simulation.chain import Chain


class Perceptron(eqx.Module):
    """One hidden layer of tanh units and a linear readout."""

    hidden: eqx.nn.Linear
    readout: eqx.nn.Linear

    @classmethod
    def random(cls, inputs: int, units: int, outputs: int, key: Key[jax.Array, ""]) -> "Perceptron":
        """Equinox's own initial weights."""
        first, second = jax.random.split(key)
        return cls(eqx.nn.Linear(inputs, units, key=first), eqx.nn.Linear(units, outputs, key=second))

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.readout.weight.shape[0]

    def mean(self, x: Float[AnyArray, "N D"]) -> Float[AnyArray, "N Dy"]:
        """The network's prediction."""
        return jax.vmap(lambda row: self.readout(jnp.tanh(self.hidden(row))))(x)


@dataclass(frozen=True)
class MLPNARX(Lagged):
    """A multilayer perceptron on measured lags.

    units         numbers of hidden units to choose from: the one whose networks simulate the held-out pieces of a
                  cross-validation inside the training part best
    weight_decay  penalty on the squares of the weights, all values z-scored
    iterations    at most so many of L-BFGS-B for every training
    """

    units: tuple[int, ...] = (2, 4, 8, 16, 32)
    weight_decay: float = 1e-3
    iterations: int = 300

    def __post_init__(self):
        super().__post_init__()
        if not isinstance(self.units, tuple | list) or not self.units:
            raise InputError(f"units must be a tuple of numbers to choose from, received {self.units!r}")
        object.__setattr__(self, "units", tuple(check_integer("units", number, least=1) for number in self.units))
        object.__setattr__(self, "weight_decay", check_number("weight_decay", self.weight_decay, least=0.0))
        object.__setattr__(self, "iterations", check_integer("iterations", self.iterations, least=1))

    @with_numerics
    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedMLPNARX":
        """Choose the number of units by cross-validation, then train on everything. `seed` draws the first weights."""
        records = require_complete(train, "MLP-NARX")
        prep = Preprocessor.from_records(records, self.order_for(records[0].u.shape[1]))
        rows = narx_rows(prep, records)
        key = jax.random.key(check_seed(seed))
        total = len(self.units) * PIECES + 1
        with progress_bar("fitting MLP-NARX", total, progress) as update:
            trials = []
            for number in self.units:
                trials.append(_cross_validate(self, prep, records, rows, number, key))
                update(len(trials) * PIECES, f"{number} units: error {trials[-1].error:.3f}")
            best = min(trials, key=lambda trial: trial.error)
            network, optimum = _train(self, rows, np.ones(len(rows.y)), best.units, key)
        return FittedMLPNARX(prep, optimum.status, check_seed(seed), best.residual_std, network)


@dataclass(frozen=True, eq=False, repr=False)
class FittedMLPNARX(FittedNarx[Perceptron]):
    """A trained MLP-NARX. Its residuals are those of the cross-validation, for the number of units it chose."""


class _Trial(NamedTuple):
    units: int
    error: float
    residual_std: Float64[np.ndarray, " Dy"]


def _cross_validate(
    spec: MLPNARX, prep: Preprocessor, records: Sequence[Series], rows: NarxRows, units: int, key: Key[jax.Array, ""]
) -> _Trial:
    # Every piece is simulated by a network that has not seen it.
    errors = []
    for number in range(PIECES):
        apart = rows_outside(prep, [len(record) for record in records], number)
        network, optimum = _train(spec, rows, apart.astype(np.float64), units, key)
        if optimum.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # before there is anything to keep
        with defer_interrupts():
            runs = simulated_records(prep, Chain((network,), None, spec.lags), records)
        errors.append(held_out_errors(prep, records, runs, number))
    together = np.concatenate(errors)
    return _Trial(units, rms_error(together), residual_deviation(together))


def _train(
    spec: MLPNARX, rows: NarxRows, weights: Float64[np.ndarray, " R"], units: int, key: Key[jax.Array, ""]
) -> tuple[Perceptron, Optimum]:
    start = Perceptron.random(rows.x_hat.shape[1], units, rows.y.shape[1], key)
    return maximise_tree(lambda network: _quality(network, rows, weights, spec.weight_decay), start, spec.iterations)


@jax.jit
@jax.value_and_grad
def _quality(
    network: Perceptron, rows: NarxRows, weights: Float[AnyArray, " R"], weight_decay: float | Float[AnyArray, ""]
) -> Float[AnyArray, ""]:
    # Minus the mean squared one-step error and the penalty. Rows are left out by weight, so that folds have one shape.
    squares = jnp.mean((rows.y - network.mean(rows.x_hat)) ** 2, axis=1)
    size = jnp.sum(network.hidden.weight**2) + jnp.sum(network.readout.weight**2)
    return -jnp.sum(weights * squares) / jnp.sum(weights) - weight_decay * size
