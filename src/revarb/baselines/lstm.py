"""LSTM: a recurrent network from inputs to outputs, with memory cells instead of lags."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Float64, Key

from revarb.baselines.lstm_network import UPDATES_PER_ROUND, LSTMNetwork, run_network, train_rounds
from revarb.baselines.narx import require_complete
from revarb.baselines.subsequences import Subsequences, delay_inputs
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import ComputationError, InputError, check_integer, check_number, check_seed
from revarb.models.by_residuals import FittedByResiduals
from revarb.optim.status import Status
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.numerics import AnyArray, with_numerics
from revarb.runtime.progress import progress_bar
from revarb.training.held_out import TAIL, compute_held_out_errors, estimate_residual_std, locate_piece, rms_error


@dataclass(frozen=True)
class LSTM:
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
        if not isinstance(self.layers, tuple | list) or not self.layers:
            raise InputError(f"layers must be a tuple of depths to choose from, received {self.layers!r}")
        object.__setattr__(self, "layers", tuple(check_integer("layers", depth, 1, 3) for depth in self.layers))
        for name, least in (("units", 1), ("input_delay", 0), ("subsequence", 2), ("batch", 1), ("updates", 1),
                            ("patience", 1)):  # fmt: skip
            object.__setattr__(self, name, check_integer(name, getattr(self, name), least))
        object.__setattr__(self, "learning_rate", check_number("learning_rate", self.learning_rate, above=0.0))

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
        records = require_complete(train, "LSTM")
        prep = Preprocessor.from_records(records, Order(0, 1 if records[0].input_names else 0, self.input_delay))
        key = jax.random.key(check_seed(seed))
        with progress_bar("fitting LSTM", _count_rounds(self) * len(self.layers), progress) as update:
            trials = _search(self, prep, records, key, update)
        best = min(trials, key=lambda trial: trial.error)
        if not np.isfinite(best.error):
            raise ComputationError("the training of the LSTM diverged; use a smaller learning_rate")
        residual_std = estimate_residual_std(_compute_tail_errors(prep, records, best.network))
        if trials[-1].status is Status.INTERRUPTED:
            return FittedLSTM(prep, Status.INTERRUPTED, check_seed(seed), residual_std, best.network)
        network, status = _train_on_everything(self, prep, records, best, key)
        return FittedLSTM(prep, status, check_seed(seed), residual_std, network)


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


class _Trial(NamedTuple):
    """The training of one depth: its best network, after how many rounds, its error, and how the training ended."""

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
    # Trains every depth on the head of the records; after Ctrl-C the trials so far are returned.
    lengths = [len(record) for record in records]
    tails = zip(locate_piece(lengths, TAIL), lengths, strict=True)
    heads = [tail.start if tail.stop > tail.start else length for tail, length in tails]
    cuts = _cut_records(prep, records, heads, spec.subsequence)
    trials: list[_Trial] = []
    for number, depth in enumerate(spec.layers):

        def report(rounds: int, error: float, number: int = number, depth: int = depth) -> None:
            update(number * _count_rounds(spec) + rounds, f"{depth} layer(s): error {error:.3f}")

        trials.append(_train(spec, prep, records, cuts, depth, key, report))
        if trials[-1].status is Status.INTERRUPTED:
            break
    return trials


def _train(
    spec: LSTM,
    prep: Preprocessor,
    records: Sequence[Series],
    cuts: Subsequences,
    depth: int,
    key: Key[jax.Array, ""],
    report: Callable[[int, float], None],
) -> _Trial:
    networks = _start_training(spec, cuts, depth, key)
    best: _Trial | None = None
    for rounds in range(1, _count_rounds(spec) + 1):
        with capture_interrupts() as pressed:
            network = next(networks)
            error = rms_error(_compute_tail_errors(prep, records, network))
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
    cuts = _cut_records(prep, records, [len(record) for record in records], spec.subsequence)
    networks, network = _start_training(spec, cuts, best.depth, key), best.network
    for _ in range(best.rounds):
        with capture_interrupts() as pressed:
            network = next(networks)
        if pressed:
            return best.network, Status.INTERRUPTED
    return jax.tree.map(np.asarray, network), best.status


def _start_training(spec: LSTM, cuts: Subsequences, depth: int, key: Key[jax.Array, ""]) -> Iterator[LSTMNetwork]:
    first, draws = jax.random.split(key)
    network = LSTMNetwork.draw(cuts.u_bar.shape[1], depth, spec.units, cuts.y.shape[1], first)
    return train_rounds(network, cuts, spec.batch, spec.learning_rate, draws)


def _count_rounds(spec: LSTM) -> int:
    return -(-spec.updates // UPDATES_PER_ROUND)


def _cut_records(prep: Preprocessor, records: Sequence[Series], heads: Sequence[int], subsequence: int) -> Subsequences:
    usable = [head for head in heads if head > 1]
    if not usable:
        lengths = [len(record) for record in records][:5]
        raise InputError(f"records of {lengths} samples leave no rows to train on; an LSTM needs longer ones")
    u_bars = [delay_inputs(prep, prep.scaling.inputs(record.u)) for record in records]
    outputs = [prep.scaling.outputs(record.y) for record in records]
    return Subsequences.from_records(u_bars, outputs, heads, min(subsequence, max(usable)))


def _compute_tail_errors(
    prep: Preprocessor, records: Sequence[Series], network: LSTMNetwork
) -> Float64[np.ndarray, "E Dy"]:
    runs = [np.asarray(run_network(network, delay_inputs(prep, prep.scaling.inputs(record.u)))) for record in records]
    return compute_held_out_errors(prep, records, runs, TAIL)
