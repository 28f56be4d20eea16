"""LSTM: a recurrent network from inputs to outputs, with memory cells instead of lags."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float, Float64, Int, Key

from revarb.baselines.training_rows import (
    DelayedRecords,
    Subsequences,
    Training,
    cut_subsequences,
    delay_inputs,
    run_adam,
)
from revarb.data.series import Series, as_records
from revarb.errors import ComputationError, InputError, check_integer, check_number, check_seed
from revarb.fitting.quarters import TAIL, compute_quarter_errors, estimate_residual_std, locate_quarter, rms_error
from revarb.models import model_file
from revarb.models.configuration import Configuration, check_integers
from revarb.models.recipe import MAX_UNITS, Status
from revarb.models.residual_band import FittedByResiduals, check_residual_std
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.runtime.progress import progress_bar

MAX_LAYERS = 3
UPDATES_PER_ROUND = 25  # updates per compiled call; the error on the tail is computed after each round
Report = Callable[[int, float], None]  # rounds so far, error


class LSTMNetwork(eqx.Module):
    """Stacked LSTM cells and a linear readout."""

    cells: tuple[eqx.nn.LSTMCell, ...]
    readout: eqx.nn.Linear

    @classmethod
    def draw(cls, inputs: int, layers: int, units: int, outputs: int, key: Key[jax.Array, ""]) -> "LSTMNetwork":
        """Draw a network with Equinox's default initial weights."""
        *keys, last = jax.random.split(key, layers + 1)
        sizes = [inputs] + [units] * (layers - 1)
        cells = tuple(eqx.nn.LSTMCell(size, units, key=each) for size, each in zip(sizes, keys, strict=True))
        return cls(cells, eqx.nn.Linear(units, outputs, key=last))

    def __call__(self, u_bar: Float[AnyArray, "T Du"]) -> Float[AnyArray, "T Dy"]:
        """Run the network over a record from an empty memory."""

        def step(states, now):
            following = []
            for cell, state in zip(self.cells, states, strict=True):
                following.append(cell(now, state))
                now = following[-1][0]
            return tuple(following), self.readout(now)

        empty = tuple((jnp.zeros(cell.hidden_size), jnp.zeros(cell.hidden_size)) for cell in self.cells)
        return jax.lax.scan(step, empty, u_bar)[1]


run_network = jax.jit(lambda network, u_bar: network(u_bar))


@dataclass(frozen=True)
class LSTM(Configuration):
    """A long short-term memory network from inputs to outputs.

    Parameters
    ----------
    layers : tuple of int
        Depths to choose from, 1 to 3, by the error on the held-out tail of the training records.
    units : int
        Number of cells per layer.
    input_delay : int
        Age of the newest input: 1 by default, 0 for direct feedthrough, k for a dead time of k samples.
    subsequence : int
        Length of the random sub-sequences that the network is trained on; less if the records are shorter.
    batch : int
        Number of sub-sequences per update.
    learning_rate : float
        Learning rate of Adam.
    updates : int
        Largest number of updates, in rounds of 25.
    patience : int
        Training stops after this number of updates without a smaller error on the tail, in rounds of 25.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.tanh(np.convolve(u, [0.0, 1.0, 0.5])[:60])
    >>> model = revarb.LSTM(layers=(1,), units=4, updates=25).fit(revarb.Series(u, y))
    >>> model.simulate(u).mean.shape
    (60, 1)
    """

    layers: tuple[int, ...] = (1, 2, 3)
    units: int = 32
    input_delay: int = 1
    subsequence: int = 60
    batch: int = 8
    learning_rate: float = 5e-3
    updates: int = 2000
    patience: int = 400

    def __post_init__(self):
        self._check(("layers",), check_integers, 1, MAX_LAYERS)
        self._check(("units", "batch", "updates", "patience"), check_integer, least=1)
        self._check(("input_delay",), check_integer, least=0)
        self._check(("subsequence",), check_integer, least=2)
        self._check(("learning_rate",), check_number, above=0.0)

    @property
    def _rounds(self) -> int:
        return -(-self.updates // UPDATES_PER_ROUND)

    @with_numerics
    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedLSTM":
        """Train every depth on the head of the records, choose by the free run of the tail, then train on everything.

        The last training has the depth and the number of updates with the smallest error on the tail. Ctrl-C returns
        the best network of the search.

        Parameters
        ----------
        train : Series or list of Series
            The training records, without missing outputs.
        seed : int
            Seed of the initial weights and of the sub-sequences.
        progress : bool
            Show a progress bar, or where the output is not a terminal, a line now and then.

        Returns
        -------
        FittedLSTM

        Raises
        ------
        InputError
            If outputs are missing or the records are too short.
        ComputationError
            If the training diverges.
        """
        data = DelayedRecords.from_records(_require_complete(train), self.input_delay)
        prep, seed = data.prep, check_seed(seed)
        key = jax.random.key(seed)
        with progress_bar("fitting LSTM", self._rounds * len(self.layers), progress) as update:
            trials = _search(self, data, key, update)
        best = min(trials, key=lambda trial: trial.error)
        if not np.isfinite(best.error):
            raise ComputationError("the training of the LSTM diverged; use a smaller learning_rate")
        residual_std = estimate_residual_std(_compute_tail_errors(data, best.network))
        if trials[-1].status is Status.INTERRUPTED:
            return FittedLSTM(prep, Status.INTERRUPTED, seed, residual_std, best.network)
        network, status = _train_on_everything(self, data, best, key)
        return FittedLSTM(prep, status, seed, residual_std, network)


@dataclass(frozen=True, eq=False, repr=False)
class FittedLSTM(FittedByResiduals):
    """A trained LSTM. Its band is that of the errors on the training tail before the last training.

    Attributes
    ----------
    residual_std : array [outputs]
        Standard deviation of the held-out errors, z-scored.
    network : LSTMNetwork
        The network, from z-scored inputs to z-scored outputs.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.tanh(np.convolve(u, [0.0, 1.0, 0.5])[:60])
    >>> model = revarb.LSTM(layers=(1,), units=4, updates=25).fit(revarb.Series(u, y))
    >>> model.simulate(u)
    Trajectory(60 rows, outputs ('y',), method='residuals', start='cold')
    """

    network: LSTMNetwork

    def run_mean(self, z: Float64[np.ndarray, "T Du"]) -> Float[AnyArray, "T Dy"]:
        """Simulate the network from an empty memory.

        Parameters
        ----------
        z : array [T, inputs]
            Inputs, z-scored.

        Returns
        -------
        array [T, outputs]
            Outputs, z-scored.
        """
        return run_network(self.network, delay_inputs(self.preprocessor, z))


def _require_complete(train: Series | Sequence[Series]) -> tuple[Series, ...]:
    records = as_records(train)
    if missing := sum(record.missing for record in records):
        total = sum(record.y.size for record in records)
        raise InputError(
            f"LSTM needs every output value, and {missing} of {total} are missing; fill them, or use RGP, which "
            "accepts missing outputs"
        )
    return records


class _Trial(NamedTuple):
    """The training of one depth: its best network, after how many rounds, its error, and how the training ended."""

    depth: int
    network: LSTMNetwork
    rounds: int
    error: float
    status: Status


def _search(
    spec: LSTM, data: DelayedRecords, key: Key[jax.Array, ""], update: Callable[[int, str], None]
) -> list[_Trial]:
    # Trains every depth on the head of the records; after Ctrl-C the trials so far are returned.
    lengths = [len(record) for record in data.records]
    tails = zip(locate_quarter(lengths, TAIL), lengths, strict=True)
    heads = [tail.start if tail.stop > tail.start else length for tail, length in tails]
    cuts, trials = _cut_records(data, heads, spec.subsequence), []
    for number, depth in enumerate(spec.layers):

        def report(rounds: int, error: float, number: int = number, depth: int = depth) -> None:
            update(number * spec._rounds + rounds, f"{depth} layer(s): error {error:.3f}")

        trials.append(_train(spec, data, cuts, depth, key, report))
        if trials[-1].status is Status.INTERRUPTED:
            break
    return trials


def _train(
    spec: LSTM, data: DelayedRecords, cuts: Subsequences, depth: int, key: Key[jax.Array, ""], report: Report
) -> _Trial:
    networks = _train_rounds(spec, cuts, depth, key)
    best: _Trial | None = None
    for rounds in range(1, spec._rounds + 1):
        with capture_interrupts() as pressed:
            network = next(networks)
            error = rms_error(_compute_tail_errors(data, network))
        report(rounds, error)
        if best is None or error < best.error:
            best = _Trial(depth, jax.tree.map(np.asarray, network), rounds, error, Status.ITERATION_LIMIT)
        if pressed:
            return best._replace(status=Status.INTERRUPTED)
        if not np.isfinite(error):
            return best._replace(status=Status.NOT_FINITE)
        if (rounds - best.rounds) * UPDATES_PER_ROUND >= spec.patience:
            return best._replace(status=Status.CONVERGED)
    assert best is not None  # there is at least one round
    return best


def _train_on_everything(
    spec: LSTM, data: DelayedRecords, best: _Trial, key: Key[jax.Array, ""]
) -> tuple[LSTMNetwork, Status]:
    cuts = _cut_records(data, [len(record) for record in data.records], spec.subsequence)
    networks, network = _train_rounds(spec, cuts, best.depth, key), best.network
    for _ in range(best.rounds):
        with capture_interrupts() as pressed:
            network = next(networks)
        if pressed:
            return best.network, Status.INTERRUPTED
    return jax.tree.map(np.asarray, network), best.status


def _train_rounds(spec: LSTM, cuts: Subsequences, depth: int, key: Key[jax.Array, ""]) -> Iterator[LSTMNetwork]:
    # Trains a new network without end; yields it after every round of updates.
    first, key = jax.random.split(key)
    network = LSTMNetwork.draw(cuts.u_bar.shape[1], depth, spec.units, cuts.y.shape[1], first)
    now = network, _make_rule(spec.learning_rate).init(network)  # pyright: ignore[reportArgumentType] (a tree)
    while True:
        key, draw_key = jax.random.split(key)
        starts = jax.random.choice(draw_key, cuts.starts, (UPDATES_PER_ROUND, spec.batch))
        now = _run_round(now, starts, cuts.u_bar, cuts.y, spec.learning_rate, cuts.length)
        yield now[0]


@partial(jax.jit, static_argnames="length")
def _run_round(
    start: Training,
    starts: Int[AnyArray, "K B"],
    u_bar: Float[AnyArray, "N Du"],
    y: Float[AnyArray, "N Dy"],
    learning_rate: float | Float[jax.Array, ""],
    length: int,
) -> Training:
    # Makes one update of Adam for every row of `starts`.
    def loss(network: LSTMNetwork, chosen: Int[AnyArray, " B"]) -> Float[AnyArray, ""]:
        u_cuts, y_cuts = (cut_subsequences(values, chosen, length) for values in (u_bar, y))
        # A sub-sequence starts with an empty memory, unlike the record: its first half is not scored.
        errors = (jax.vmap(network)(u_cuts) - y_cuts)[:, length // 2 :]
        return jnp.mean(errors**2)

    return run_adam(_make_rule(learning_rate), loss, start, starts)[0]


def _make_rule(learning_rate: float | Float[jax.Array, ""]) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(learning_rate))


def _cut_records(data: DelayedRecords, heads: Sequence[int], subsequence: int) -> Subsequences:
    usable = [head for head in heads if head > 1]
    if not usable:
        lengths = [len(record) for record in data.records][:5]
        raise InputError(f"records of {lengths} samples leave no rows to train on; an LSTM needs longer ones")
    return Subsequences.from_records(data.u_bars, data.ys, heads, min(subsequence, max(usable)))


def _compute_tail_errors(data: DelayedRecords, network: LSTMNetwork) -> Float64[np.ndarray, "E Dy"]:
    runs = [np.asarray(run_network(network, u_bar)) for u_bar in data.u_bars]
    return compute_quarter_errors(data.prep, data.records, runs, TAIL)


def _write_lstm(model: FittedLSTM) -> tuple[dict[str, Any], Any]:
    cells, arrays = model.network.cells, {"residual_std": model.residual_std, "network": model.network}
    return {"layers": len(cells), "units": cells[0].hidden_size}, arrays


def _read_lstm(header: model_file.Header, arrays: model_file.Arrays) -> FittedLSTM:
    fields, layers = model_file.common_fields(header), check_integer("layers", header["layers"], 1, MAX_LAYERS)
    units = check_integer("units", header["units"], 1, MAX_UNITS)
    prep, outputs = fields.preprocessor, len(fields.preprocessor.output_names)
    inputs = prep.order.input_lags * len(prep.input_names)
    shapes = eqx.filter_eval_shape(LSTMNetwork.draw, inputs, layers, units, outputs, jax.random.key(0))
    blank = jax.tree.map(lambda leaf: model_file.blank_array(*leaf.shape), shapes)
    trained = model_file.fill_template({"residual_std": model_file.blank_array(outputs), "network": blank}, arrays)
    return FittedLSTM(*fields, check_residual_std(trained["residual_std"]), trained["network"])


model_file.register_format(model_file.ModelFormat("LSTM", FittedLSTM, _write_lstm, _read_lstm))
