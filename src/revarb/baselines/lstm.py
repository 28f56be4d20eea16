"""LSTM: a recurrent network from u to y, its own memory instead of lags."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float, Float64, Int, Key
from numpy.typing import ArrayLike

from revarb.baselines.held_out import TAIL, error_size, held_out_errors, piece, residual_spread
from revarb.errors import InputError, check_number, check_seed, check_whole
from revarb.frame import Fitted, Frame
from revarb.free_run import Residuals, residual_trajectory
from revarb.interrupts import held_interrupts
from revarb.numerics import AnyArray, with_numerics
from revarb.optimise import Status
from revarb.progress import progress_bar
from revarb.series import Series, as_records
from revarb.trajectory import Trajectory
from revarb.windows import Lags, input_windows

UPDATES_PER_CHECK = 25


class Memory(eqx.Module):
    """LSTM cells on top of each other and a linear readout."""

    cells: tuple[eqx.nn.LSTMCell, ...]
    readout: eqx.nn.Linear

    @classmethod
    def random(cls, inputs: int, layers: int, units: int, outputs: int, key: Key[jax.Array, ""]) -> "Memory":
        """Equinox's own initial weights."""
        *keys, last = jax.random.split(key, layers + 1)
        sizes = [inputs] + [units] * (layers - 1)
        cells = tuple(eqx.nn.LSTMCell(size, units, key=each) for size, each in zip(sizes, keys, strict=True))
        return cls(cells, eqx.nn.Linear(units, outputs, key=last))

    def __call__(self, u_bar: Float[AnyArray, "T Du"]) -> Float[AnyArray, "T Dy"]:
        """Run from an empty memory."""

        def step(states, now):
            following = []
            for cell, state in zip(self.cells, states, strict=True):
                following.append(cell(now, state))
                now = following[-1][0]
            return tuple(following), self.readout(now)

        empty = tuple((jnp.zeros(cell.hidden_size), jnp.zeros(cell.hidden_size)) for cell in self.cells)
        return jax.lax.scan(step, empty, u_bar)[1]


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
        object.__setattr__(self, "layers", tuple(check_whole("layers", depth, 1, 3) for depth in self.layers))
        for name, least in (("units", 1), ("input_delay", 0), ("subsequence", 2), ("batch", 1), ("updates", 1),
                            ("patience", 1)):  # fmt: skip
            object.__setattr__(self, name, check_whole(name, getattr(self, name), least))
        object.__setattr__(self, "learning_rate", check_number("learning_rate", self.learning_rate, above=0.0))

    @with_numerics
    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedLSTM":
        """Adam on random sub-sequences of the head of the training part, stopped early by the free run of its tail."""
        records = as_records(train)
        frame = Frame.of(records, Lags(0, 1 if records[0].input_names else 0, self.input_delay))
        data = _Data.of(frame, records, self.subsequence)
        key = jax.random.key(check_seed(seed))
        checks = _checks(self)
        with progress_bar("fitting LSTM", checks * len(self.layers), progress) as update:
            trials = []
            for number, depth in enumerate(self.layers):

                def report(check: int, error: float, number: int = number, depth: int = depth) -> None:
                    update(number * checks + check, f"{depth} layer(s): error {error:.3f}")

                trials.append(_train(self, frame, records, data, depth, key, report))
                if trials[-1].status is Status.INTERRUPTED:
                    break
        best = min(trials, key=lambda trial: trial.error)
        if not np.isfinite(best.error):
            raise InputError("the LSTM's training never gave a finite error; use a smaller learning_rate")
        spread = residual_spread(_tail_errors(frame, records, best.network))
        return FittedLSTM(frame, trials[-1].status, check_seed(seed), best.network, spread)


@dataclass(frozen=True, eq=False, repr=False)
class FittedLSTM(Fitted):
    """A trained LSTM."""

    network: Memory
    residual_std: Float64[np.ndarray, " Dy"]

    compared = ("residuals",)

    @with_numerics
    def simulate(
        self, u: ArrayLike | None = None, method: Residuals = "residuals", *, steps: int | None = None
    ) -> Trajectory:
        """Run from an empty memory; the band is as wide as the errors on the training tail."""
        mean = _run(self.network, _inputs(self.frame, self.frame.checked_inputs(u, steps)))
        return residual_trajectory(self.frame, method, mean, self.residual_std)


class _Data(NamedTuple):
    """All records below each other, and where a training sub-sequence may begin."""

    u_bar: Float64[np.ndarray, "N Du"]
    y: Float64[np.ndarray, "N Dy"]
    starts: Int[np.ndarray, " C"]
    length: int

    @classmethod
    def of(cls, frame: Frame, records: Sequence[Series], subsequence: int) -> "_Data":
        lengths = [len(record) for record in records]
        # The head of a record is what comes before its held-out piece: nothing of the tail is trained on.
        heads = [
            held.start if held.stop > held.start else length
            for held, length in zip(piece(lengths, TAIL), lengths, strict=True)
        ]
        usable = [head for head in heads if head > 1]
        if not usable:
            raise InputError(f"records of {lengths[:5]} samples leave nothing to train on; an LSTM needs longer ones")
        length = min(subsequence, *usable)
        offsets = np.cumsum([0, *lengths[:-1]])
        starts = [offset + np.arange(max(head - length + 1, 0)) for offset, head in zip(offsets, heads, strict=True)]
        return cls(
            np.concatenate([_inputs(frame, frame.scaling.inputs(record.u)) for record in records]),
            np.concatenate([frame.scaling.outputs(record.y) for record in records]),
            np.concatenate(starts).astype(np.int32),
            length,
        )


class _Trial(NamedTuple):
    network: Memory
    error: float
    status: Status


def _inputs(frame: Frame, z: Float64[np.ndarray, "T Du"]) -> Float64[np.ndarray, "T Du"]:
    # One input per step, `delay` old; before the record inputs are at their mean.
    return input_windows(np.concatenate([np.zeros((frame.lags.reach, z.shape[1])), z]), frame.lags)


_run = jax.jit(lambda network, u_bar: network(u_bar))


def _tail_errors(frame: Frame, records: Sequence[Series], network: Memory) -> np.ndarray:
    runs = [np.asarray(_run(network, _inputs(frame, frame.scaling.inputs(record.u)))) for record in records]
    return held_out_errors(frame, records, runs, TAIL)


def _train(
    spec: LSTM,
    frame: Frame,
    records: Sequence[Series],
    data: _Data,
    depth: int,
    key: Key[jax.Array, ""],
    report: Callable[[int, float], None],
) -> _Trial:
    first, draws = jax.random.split(key)
    network = Memory.random(data.u_bar.shape[1], depth, spec.units, data.y.shape[1], first)
    state = _optimiser(spec.learning_rate).init(network)  # pyright: ignore[reportArgumentType] (a tree)
    best, since = _Trial(network, float("inf"), Status.ITERATION_LIMIT), 0
    for check in range(_checks(spec)):
        with held_interrupts() as pressed:
            starts = _drawn_starts(data, jax.random.fold_in(draws, check), spec.batch)
            network, state = _updates(network, state, starts, data.u_bar, data.y, spec.learning_rate, data.length)
            error = error_size(_tail_errors(frame, records, network))
        report(check + 1, error)
        since += UPDATES_PER_CHECK
        if error < best.error:
            best, since = _Trial(jax.tree.map(np.asarray, network), error, Status.ITERATION_LIMIT), 0
        if pressed:
            return best._replace(status=Status.INTERRUPTED)
        if since >= spec.patience or not np.isfinite(error):
            return best._replace(status=Status.CONVERGED)
    return best


def _checks(spec: LSTM) -> int:
    return -(-spec.updates // UPDATES_PER_CHECK)


def _optimiser(learning_rate: float | Float[AnyArray, ""]) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(learning_rate))


def _drawn_starts(data: _Data, key: Key[jax.Array, ""], batch: int) -> Int[AnyArray, "K B"]:
    return jax.random.choice(key, data.starts, (UPDATES_PER_CHECK, batch))


@partial(jax.jit, static_argnames="length")
def _updates(
    network: Memory,
    state: optax.OptState,
    starts: Int[AnyArray, "K B"],
    u_bar: Float[AnyArray, "N Du"],
    y: Float[AnyArray, "N Dy"],
    learning_rate: float | Float[AnyArray, ""],
    length: int,
) -> tuple[Memory, optax.OptState]:
    """One update of Adam for every row of `starts`."""
    optimiser = _optimiser(learning_rate)

    def cut(values, start):
        return jax.lax.dynamic_slice_in_dim(values, start, length)

    def loss(network, chosen):
        u_cuts, y_cuts = (jax.vmap(cut, (None, 0))(values, chosen) for values in (u_bar, y))
        # A piece out of a record starts with an empty memory, which is not what it was: half of it is for warming up.
        errors = (jax.vmap(network)(u_cuts) - y_cuts)[:, length // 2 :]
        return jnp.mean(errors**2)

    def update(carry, chosen):
        network, state = carry
        changes, state = optimiser.update(jax.grad(loss)(network, chosen), state)
        return (eqx.apply_updates(network, changes), state), None

    return jax.lax.scan(update, (network, state), starts)[0]
