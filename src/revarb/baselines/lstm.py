"""LSTM: a recurrent network from u to y, its own memory instead of lags."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Float64, Key

from revarb.baselines.held_out import TAIL, held_out_errors, piece, residual_deviation, rms_error
from revarb.baselines.lstm_network import UPDATES_PER_ROUND, Cuts, LSTMNetwork, run_network, train_rounds
from revarb.baselines.narx import FittedByResiduals, require_complete
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import Order, input_windows
from revarb.errors import InputError, check_integer, check_number, check_seed
from revarb.optim.status import Status
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.runtime.progress import progress_bar


@dataclass(frozen=True)
class LSTM:
    """A long short-term memory network from inputs to outputs.

    layers         depths to choose from, 1 to 3: the one with the smallest error on the held-out training tail
    units          cells per layer
    input_delay    age of the newest input it sees
    subsequence    training runs over pieces of this length, cut out at random (shorter where the records are)
    batch          so many of them in every update
    learning_rate  of Adam
    updates        at most so many; training stops after `patience` updates without a better error on the tail
                   (both in rounds of 25)
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
        if not isinstance(self.layers, tuple | list) or not self.layers:
            raise InputError(f"layers must be a tuple of depths to choose from, received {self.layers!r}")
        object.__setattr__(self, "layers", tuple(check_integer("layers", depth, 1, 3) for depth in self.layers))
        for name, least in (("units", 1), ("input_delay", 0), ("subsequence", 2), ("batch", 1), ("updates", 1),
                            ("patience", 1)):  # fmt: skip
            object.__setattr__(self, name, check_integer(name, getattr(self, name), least))
        object.__setattr__(self, "learning_rate", check_number("learning_rate", self.learning_rate, above=0.0))

    @with_numerics
    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedLSTM":
        """Train on the head of the training part, stop by the free run of its tail; then once more on all of it.

        The last training has the depth and the number of updates that were best on the tail. Ctrl-C keeps the best
        network of the search.
        """
        records = require_complete(train, "LSTM")
        prep = Preprocessor.from_records(records, Order(0, 1 if records[0].input_names else 0, self.input_delay))
        key = jax.random.key(check_seed(seed))
        with progress_bar("fitting LSTM", _rounds(self) * len(self.layers), progress) as update:
            trials = _search(self, prep, records, key, update)
        best = min(trials, key=lambda trial: trial.error)
        if not np.isfinite(best.error):
            raise InputError("the LSTM's training never gave a finite error; use a smaller learning_rate")
        spread = residual_deviation(_tail_errors(prep, records, best.network))
        if trials[-1].status is Status.INTERRUPTED:
            return FittedLSTM(prep, Status.INTERRUPTED, check_seed(seed), spread, best.network)
        network, status = _train_on_everything(self, prep, records, best, key)
        return FittedLSTM(prep, status, check_seed(seed), spread, network)


@dataclass(frozen=True, eq=False, repr=False)
class FittedLSTM(FittedByResiduals):
    """A trained LSTM. Its residuals are those on the training tail, before the last training."""

    network: LSTMNetwork

    def mean_run(self, z: Float64[np.ndarray, "T Du"]) -> Float[AnyArray, "T Dy"]:
        """The network from an empty memory."""
        return run_network(self.network, _inputs(self.preprocessor, z))


class _Trial(NamedTuple):
    """One depth: the best network on the way, after how many rounds it was there, and how the training ended."""

    depth: int
    network: LSTMNetwork
    rounds: int
    error: float
    status: Status


def _search(
    spec: LSTM,
    prep: Preprocessor,
    records: Sequence[Series],
    key: Key[jax.Array, ""],
    update: Callable[[int, str], None],
) -> list[_Trial]:
    # Every depth on the head of the training part; Ctrl-C ends it with what there is.
    lengths = [len(record) for record in records]
    pieces = zip(piece(lengths, TAIL), lengths, strict=True)
    cuts = _cuts(prep, records, [held.start if held.stop > held.start else all_ for held, all_ in pieces],
                 spec.subsequence)  # fmt: skip
    trials: list[_Trial] = []
    for number, depth in enumerate(spec.layers):

        def report(rounds: int, error: float, number: int = number, depth: int = depth) -> None:
            update(number * _rounds(spec) + rounds, f"{depth} layer(s): error {error:.3f}")

        trials.append(_train(spec, prep, records, cuts, depth, key, report))
        if trials[-1].status is Status.INTERRUPTED:
            break
    return trials


def _train(
    spec: LSTM,
    prep: Preprocessor,
    records: Sequence[Series],
    cuts: Cuts,
    depth: int,
    key: Key[jax.Array, ""],
    report: Callable[[int, float], None],
) -> _Trial:
    networks = _training(spec, cuts, depth, key)
    best: _Trial | None = None
    for rounds in range(1, _rounds(spec) + 1):
        with capture_interrupts() as pressed:
            network = next(networks)
            error = rms_error(_tail_errors(prep, records, network))
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
    spec: LSTM, prep: Preprocessor, records: Sequence[Series], best: _Trial, key: Key[jax.Array, ""]
) -> tuple[LSTMNetwork, Status]:
    cuts = _cuts(prep, records, [len(record) for record in records], spec.subsequence)
    networks, network = _training(spec, cuts, best.depth, key), best.network
    for _ in range(best.rounds):
        with capture_interrupts() as pressed:
            network = next(networks)
        if pressed:
            return best.network, Status.INTERRUPTED
    return jax.tree.map(np.asarray, network), best.status


def _training(spec: LSTM, cuts: Cuts, depth: int, key: Key[jax.Array, ""]) -> Iterator[LSTMNetwork]:
    first, draws = jax.random.split(key)
    network = LSTMNetwork.random(cuts.u_bar.shape[1], depth, spec.units, cuts.y.shape[1], first)
    return train_rounds(network, cuts, spec.batch, spec.learning_rate, draws)


def _rounds(spec: LSTM) -> int:
    return -(-spec.updates // UPDATES_PER_ROUND)


def _cuts(prep: Preprocessor, records: Sequence[Series], heads: Sequence[int], subsequence: int) -> Cuts:
    usable = [head for head in heads if head > 1]
    if not usable:
        lengths = [len(record) for record in records][:5]
        raise InputError(f"records of {lengths} samples leave nothing to train on; an LSTM needs longer ones")
    u_bars = [_inputs(prep, prep.scaling.inputs(record.u)) for record in records]
    outputs = [prep.scaling.outputs(record.y) for record in records]
    return Cuts.of(u_bars, outputs, heads, min(subsequence, max(usable)))


def _inputs(prep: Preprocessor, z: Float64[np.ndarray, "T Du"]) -> Float64[np.ndarray, "T Du"]:
    # One input per step, `delay` old; before the record inputs are at their mean.
    return input_windows(np.concatenate([np.zeros((prep.order.reach, z.shape[1])), z]), prep.order)


def _tail_errors(prep: Preprocessor, records: Sequence[Series], network: LSTMNetwork) -> Float64[np.ndarray, "E Dy"]:
    runs = [np.asarray(run_network(network, _inputs(prep, prep.scaling.inputs(record.u)))) for record in records]
    return held_out_errors(prep, records, runs, TAIL)
