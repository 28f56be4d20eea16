"""A chain of trained layers, the joint state of its windows, and the state before the first step (docs/theory/derivation.md, Eqs. 31 and 32)."""

from itertools import pairwise
from typing import Generic, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from revarb.gp.pathwise import DrawnFunctions
from revarb.runtime.numerics import AnyArray


@runtime_checkable
class Regression(Protocol):
    """What a mean-only run needs of a layer. With uncertainty, only a GP (`Posterior`) will do."""

    @property
    def outputs(self) -> int:
        """Number of values it predicts."""
        ...

    def mean(self, x: Float[AnyArray, "N D"]) -> Float[AnyArray, "N Dy"]:
        """Mean prediction at known regressors."""
        ...


AnyLayer = TypeVar("AnyLayer", bound=Regression | DrawnFunctions)


class Chain(eqx.Module, Generic[AnyLayer]):
    """Trained layers, or functions drawn from them, in the order of the data: hidden ones 1 … H, then the output layer.

    Without an output layer the states of the last hidden layer are the (measured) outputs: a NARX model.
    """

    hidden: tuple[AnyLayer, ...]
    output: AnyLayer | None
    lags: int = eqx.field(static=True)

    @property
    def latent_dims(self) -> tuple[int, ...]:
        """Number of latent states of each hidden layer."""
        return tuple(layer.outputs for layer in self.hidden)

    @property
    def last_layer(self) -> AnyLayer:
        """The layer whose values, with its noise, are the measured outputs."""
        return self.hidden[-1] if self.output is None else self.output


class StartState(eqx.Module):
    """The joint Gaussian of all windows before the first step, and the inputs before it (oldest first), z-scored."""

    mean: Float[AnyArray, " S"]
    cov: Float[AnyArray, "S S"]
    past_u: Float[AnyArray, "reach Du"]


def cold_start(latent_dims: tuple[int, ...], lags: int, reach: int, inputs: int) -> StartState:
    """Zero mean, unit variance, and past inputs at their training mean (zero): nothing is known."""
    size = lags * sum(latent_dims)
    return StartState(np.zeros(size), np.eye(size), np.zeros((reach, inputs)))


def reset_mask(u_bar: AnyArray, reset_row: int | AnyArray) -> AnyArray:
    return jnp.arange(u_bar.shape[0]) == reset_row


def reset_where(state, start, is_reset):
    return jax.tree.map(lambda old, new: jnp.where(is_reset, new, old), state, start)


def window_positions(chain: Chain) -> list[np.ndarray]:
    # Where each hidden layer's window stands in the joint state.
    ends = np.cumsum([chain.lags * dim for dim in chain.latent_dims])
    return [np.arange(end - chain.lags * dim, end) for end, dim in zip(ends, chain.latent_dims, strict=True)]


def regressor_positions(chain: Chain) -> list[np.ndarray]:
    # Which entries of the joint state are regressors of each hidden layer: its own window, then the layer below's
    # (which has moved on to the current step by then).
    windows = window_positions(chain)
    return [windows[0], *(np.concatenate([own, below]) for below, own in pairwise(windows))]


def shifted_positions(windows: list[np.ndarray], h: int, dim: int) -> np.ndarray:
    # The joint state with `dim` new values appended: layer h's window takes them in front and drops its oldest.
    size = int(windows[-1][-1]) + 1
    order = np.arange(size)
    order[windows[h]] = np.concatenate([np.arange(size, size + dim), windows[h][:-dim]])
    return order
