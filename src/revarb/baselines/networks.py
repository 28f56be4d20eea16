"""The networks of MLP-NARX and LSTM, and the training of an LSTM by Adam on random sub-sequences."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float, Int, Key

from revarb.baselines.training_rows import Subsequences, cut_subsequences
from revarb.models.model_file import blank_array
from revarb.runtime.numerics import AnyArray
from revarb.simulation.formulas import Affine, TanhNetwork

UPDATES_PER_ROUND = 25  # updates per compiled call; the error on the tail is computed after each round


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


def make_blank_network(draw: Any, *sizes: int) -> Any:
    """The tree of a network with arrays that take no memory, whatever sizes the header of a file has."""
    shapes = eqx.filter_eval_shape(draw, *sizes, jax.random.key(0))
    return jax.tree.map(lambda leaf: blank_array(*leaf.shape), shapes)


run_network = jax.jit(lambda network, u_bar: network(u_bar))


def train_rounds(
    network: LSTMNetwork, cuts: Subsequences, batch: int, learning_rate: float, key: Key[jax.Array, ""]
) -> Iterator[LSTMNetwork]:
    """Train without end on sub-sequences drawn with `key`; yield the network after every round of updates."""
    state = _make_optimiser(learning_rate).init(network)  # pyright: ignore[reportArgumentType] (a tree)
    while True:
        key, now = jax.random.split(key)
        starts = jax.random.choice(now, cuts.starts, (UPDATES_PER_ROUND, batch))
        network, state = _run_round(network, state, starts, cuts.u_bar, cuts.y, learning_rate, cuts.length)
        yield network


@partial(jax.jit, static_argnames="length")
def _run_round(
    network: LSTMNetwork,
    state: optax.OptState,
    starts: Int[AnyArray, "K B"],
    u_bar: Float[AnyArray, "N Du"],
    y: Float[AnyArray, "N Dy"],
    learning_rate: float | Float[jax.Array, ""],
    length: int,
) -> tuple[LSTMNetwork, optax.OptState]:
    # Makes one update of Adam for every row of `starts`.
    optimiser = _make_optimiser(learning_rate)

    def loss(network, chosen):
        u_cuts, y_cuts = (cut_subsequences(values, chosen, length) for values in (u_bar, y))
        # A sub-sequence starts with an empty memory, unlike the record: its first half is not scored.
        errors = (jax.vmap(network)(u_cuts) - y_cuts)[:, length // 2 :]
        return jnp.mean(errors**2)

    def update(carry, chosen):
        network, state = carry
        changes, state = optimiser.update(jax.grad(loss)(network, chosen), state)
        return (eqx.apply_updates(network, changes), state), None

    return jax.lax.scan(update, (network, state), starts)[0]


def _make_optimiser(learning_rate: float | Float[jax.Array, ""]) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(learning_rate))
