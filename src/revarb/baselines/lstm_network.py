"""The network of `lstm.py` and its training: cells, sub-sequences, Adam."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float, Float64, Int, Key

from revarb.runtime.numerics import AnyArray

UPDATES_PER_ROUND = 25


class LSTMNetwork(eqx.Module):
    """LSTM cells on top of each other and a linear readout."""

    cells: tuple[eqx.nn.LSTMCell, ...]
    readout: eqx.nn.Linear

    @classmethod
    def random(cls, inputs: int, layers: int, units: int, outputs: int, key: Key[jax.Array, ""]) -> "LSTMNetwork":
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


run_network = jax.jit(lambda network, u_bar: network(u_bar))


class Cuts(NamedTuple):
    """Records below each other, and where a training sub-sequence of `length` samples may begin."""

    u_bar: Float64[np.ndarray, "N Du"]
    y: Float64[np.ndarray, "N Dy"]
    starts: Int[np.ndarray, " C"]
    length: int

    @classmethod
    def of(
        cls,
        u_bars: Sequence[Float64[np.ndarray, "_ Du"]],
        outputs: Sequence[Float64[np.ndarray, "_ Dy"]],
        heads: Sequence[int],
        length: int,
    ) -> "Cuts":
        """Cuts of the first `heads[k]` samples of every record; none crosses a seam."""
        offsets = np.cumsum([0, *(len(y) for y in outputs[:-1])])
        starts = [offset + np.arange(max(head - length + 1, 0)) for offset, head in zip(offsets, heads, strict=True)]
        return cls(np.concatenate(u_bars), np.concatenate(outputs), np.concatenate(starts).astype(np.int32), length)


def train_rounds(
    network: LSTMNetwork, cuts: Cuts, batch: int, learning_rate: float, key: Key[jax.Array, ""]
) -> Iterator[LSTMNetwork]:
    """The network after every further round of updates on cuts drawn with `key`, for as long as it is asked for."""
    state = _optimiser(learning_rate).init(network)  # pyright: ignore[reportArgumentType] (a tree)
    while True:
        key, now = jax.random.split(key)
        starts = jax.random.choice(now, cuts.starts, (UPDATES_PER_ROUND, batch))
        network, state = _round(network, state, starts, cuts.u_bar, cuts.y, learning_rate, cuts.length)
        yield network


@partial(jax.jit, static_argnames="length")
def _round(
    network: LSTMNetwork,
    state: optax.OptState,
    starts: Int[AnyArray, "K B"],
    u_bar: Float[AnyArray, "N Du"],
    y: Float[AnyArray, "N Dy"],
    learning_rate: float | Float[jax.Array, ""],
    length: int,
) -> tuple[LSTMNetwork, optax.OptState]:
    # One update of Adam for every row of `starts`.
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


def _optimiser(learning_rate: float | Float[jax.Array, ""]) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(learning_rate))
