"""MLP-NARX: a network with one hidden tanh layer on measured lags, trained for one-step predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Float64, Key

from revarb.baselines.training_rows import build_complete_rows
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, as_records
from revarb.data.windows import regressor_sizes
from revarb.errors import InputError, check_integer, check_number, check_seed
from revarb.fitting import quarters
from revarb.fitting.arx import NarxRows, simulate_records
from revarb.fitting.lbfgs import Optimum, maximise_tree
from revarb.models import model_file
from revarb.models.configuration import Lagged, check_integers
from revarb.models.recipe import MAX_UNITS, Status
from revarb.models.residual_band import FittedNarx, check_residual_std
from revarb.runtime.interrupts import defer_interrupts
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.runtime.progress import progress_bar
from revarb.simulation.chain import Chain
from revarb.simulation.formulas import Affine, TanhNetwork


class Perceptron(eqx.Module):
    """One hidden layer of tanh units and a linear readout."""

    hidden: eqx.nn.Linear
    readout: eqx.nn.Linear

    @classmethod
    def draw(cls, inputs: int, units: int, outputs: int, key: Key[jax.Array, ""]) -> "Perceptron":
        """Draw a network with Equinox's default initial weights."""
        first, second = jax.random.split(key)
        return cls(eqx.nn.Linear(inputs, units, key=first), eqx.nn.Linear(units, outputs, key=second))

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.readout.weight.shape[0]

    def mean(self, x: Float[AnyArray, "N D"]) -> Float[AnyArray, "N Dy"]:
        """The network's prediction."""
        return jax.vmap(lambda row: self.readout(jnp.tanh(self.hidden(row))))(x)

    def formula(self) -> TanhNetwork:
        """The network as plain arrays."""
        return TanhNetwork(_describe(self.hidden), _describe(self.readout))


def _describe(layer: eqx.nn.Linear) -> Affine:
    assert layer.bias is not None  # Equinox's default
    return Affine(np.asarray(layer.weight, dtype=np.float64).T, np.asarray(layer.bias, dtype=np.float64))


@dataclass(frozen=True)
class MLPNARX(Lagged):
    """A multilayer perceptron from measured past outputs and inputs to the next output.

    Parameters
    ----------
    lags : int
        Number of past outputs among the regressors.
    input_lags : int
        Number of past inputs among the regressors.
    input_delay : int
        Age of the newest input: 1 by default, 0 for direct feedthrough, k for a dead time of k samples.
    units : tuple of int
        Numbers of hidden units to choose from, by free simulation in a cross-validation of the training records.
    weight_decay : float
        Penalty on the sum of squared weights; all values are z-scored.
    iterations : int
        Largest number of iterations of L-BFGS-B per training.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.tanh(np.convolve(u, [0.0, 1.0, 0.5])[:60])
    >>> model = revarb.MLPNARX(lags=1, input_lags=2, units=(4,), iterations=20).fit(revarb.Series(u, y))
    >>> model.simulate(u).mean.shape
    (60, 1)
    """

    units: tuple[int, ...] = (2, 4, 8, 16, 32)
    weight_decay: float = 1e-3
    iterations: int = 300

    def __post_init__(self):
        super().__post_init__()
        self._check(("units",), check_integers, least=1)
        self._check(("weight_decay",), check_number, least=0.0)
        self._check(("iterations",), check_integer, least=1)

    @with_numerics
    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedMLPNARX":
        """Choose the number of units by cross-validation, then train on all rows.

        Parameters
        ----------
        train : Series or list of Series
            The training records. Rows with a missing output, as target or as regressor, are left out.
        seed : int
            Seed of the initial weights.
        progress : bool
            Show a progress bar, or where the output is not a terminal, a line now and then.

        Returns
        -------
        FittedMLPNARX

        Raises
        ------
        InputError
            If the records are too short, or too few rows are complete.
        """
        records = as_records(train)
        prep = Preprocessor.from_records(records, self.order_for(records[0].u.shape[1]))
        data = _prepare(prep, records)
        key = jax.random.key(check_seed(seed))
        total = len(self.units) * quarters.QUARTERS + 1
        with progress_bar("fitting MLP-NARX", total, progress) as update:
            trials = []
            for number in self.units:
                trials.append(_cross_validate(self, data, number, key))
                update(len(trials) * quarters.QUARTERS, f"{number} units: error {trials[-1].error:.3f}")
            best = min(trials, key=lambda trial: trial.error)
            network, optimum = _train(self, data.rows, np.ones(len(data.rows.y)), best.units, key)
        return FittedMLPNARX(prep, optimum.status, check_seed(seed), best.residual_std, network)


@dataclass(frozen=True, eq=False, repr=False)
class FittedMLPNARX(FittedNarx[Perceptron]):
    """A trained MLP-NARX. Its band is that of the cross-validation errors with the chosen number of units.

    Attributes
    ----------
    residual_std : array [outputs]
        Standard deviation of the held-out errors, z-scored.
    model : Perceptron
        The network, from z-scored regressors to z-scored outputs.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.tanh(np.convolve(u, [0.0, 1.0, 0.5])[:60])
    >>> model = revarb.MLPNARX(lags=1, input_lags=2, units=(4,), iterations=20).fit(revarb.Series(u, y))
    >>> model.simulate(u)
    Trajectory(60 rows, outputs ('y',), method='residuals', start='cold')
    """


class _Data(NamedTuple):
    """The training rows, which of them every fold uses, and which held-out errors have a measured output."""

    prep: Preprocessor
    records: Sequence[Series]
    rows: NarxRows
    folds: Bool[np.ndarray, "F R"]
    measured: Bool[np.ndarray, "E Dy"]


def _prepare(prep: Preprocessor, records: Sequence[Series]) -> _Data:
    rows, complete = build_complete_rows(prep, records, "MLP-NARX")
    lengths = [len(record) for record in records]
    folds = np.stack(
        [quarters.select_rows_outside(prep, lengths, number)[complete] for number in range(quarters.QUARTERS)]
    )
    if not folds.any(axis=1).all():
        raise InputError(
            "the gaps leave no training rows beside a held-out piece of the records; use fewer lags, fill the gaps, or "
            "use RGP, which needs no such rows"
        )
    return _Data(prep, records, rows, folds, quarters.mark_measured(prep, records, range(quarters.QUARTERS)))


class _Trial(NamedTuple):
    units: int
    error: float
    residual_std: Float64[np.ndarray, " Dy"]


def _cross_validate(spec: MLPNARX, data: _Data, units: int, key: Key[jax.Array, ""]) -> _Trial:
    # Every piece is simulated by a network that was trained without it.
    prep, records, errors = data.prep, data.records, []
    for number, outside in enumerate(data.folds):
        network, optimum = _train(spec, data.rows, outside.astype(np.float64), units, key)
        if optimum.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # there is no model yet
        with defer_interrupts():
            runs = simulate_records(prep, Chain((network,), None, spec.lags), records)
        errors.append(quarters.compute_quarter_errors(prep, records, runs, number))
    joined = np.concatenate(errors)
    return _Trial(units, quarters.rms_error(joined[data.measured]), quarters.estimate_residual_std(joined))


def _train(
    spec: MLPNARX, rows: NarxRows, weights: Float64[np.ndarray, " R"], units: int, key: Key[jax.Array, ""]
) -> tuple[Perceptron, Optimum]:
    start = Perceptron.draw(rows.x_hat.shape[1], units, rows.y.shape[1], key)
    return maximise_tree(
        lambda network: _negative_loss(network, rows, weights, spec.weight_decay), start, spec.iterations
    )


@jax.jit
@jax.value_and_grad
def _negative_loss(
    network: Perceptron, rows: NarxRows, weights: Float[AnyArray, " R"], weight_decay: float | Float[AnyArray, ""]
) -> Float[AnyArray, ""]:
    # Minus the mean squared one-step error and the penalty. Rows are left out by zero weights: folds have one shape.
    squares = jnp.mean((rows.y - network.mean(rows.x_hat)) ** 2, axis=1)
    size = jnp.sum(network.hidden.weight**2) + jnp.sum(network.readout.weight**2)
    return -jnp.sum(weights * squares) / jnp.sum(weights) - weight_decay * size


def _write_mlp_narx(model: FittedMLPNARX) -> tuple[dict[str, Any], Any]:
    arrays = {"residual_std": model.residual_std, "model": model.model}
    return {"units": model.model.hidden.out_features}, arrays


def _read_mlp_narx(header: model_file.Header, arrays: model_file.Arrays) -> FittedMLPNARX:
    fields, units = model_file.common_fields(header), check_integer("units", header["units"], 1, MAX_UNITS)
    prep, outputs = fields.preprocessor, len(fields.preprocessor.output_names)
    [regressors, _] = regressor_sizes(prep.order, (outputs,), len(prep.input_names))
    shapes = eqx.filter_eval_shape(Perceptron.draw, regressors, units, outputs, jax.random.key(0))
    blank = jax.tree.map(lambda leaf: model_file.blank_array(*leaf.shape), shapes)
    trained = model_file.fill_template({"residual_std": model_file.blank_array(outputs), "model": blank}, arrays)
    return FittedMLPNARX(*fields, check_residual_std(trained["residual_std"]), trained["model"])


model_file.register_format(model_file.ModelFormat("MLP-NARX", FittedMLPNARX, _write_mlp_narx, _read_mlp_narx))
