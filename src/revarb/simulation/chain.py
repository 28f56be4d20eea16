"""A chain of trained layers, and the positions of its windows in the joint state.

docs/theory/derivation.md, Eq. 31, and 𝓞_h of Eq. 33.
"""

from itertools import pairwise
from typing import Generic, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import numpy as np
from jaxtyping import Float

from revarb.gp.pathwise import DrawnFunctions
from revarb.gp.posterior import Posterior
from revarb.runtime.numerics import AnyArray


@runtime_checkable
class Regression(Protocol):
    """A layer for mean-only runs. Runs with uncertainty need a GP (`Posterior`)."""

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        ...

    def mean(self, x: Float[AnyArray, "N D"]) -> Float[AnyArray, "N Dy"]:
        """Mean prediction at known regressors."""
        ...


@runtime_checkable
class Windowed(Protocol):
    """What the positions of windows depend on: a chain, or its step as plain arrays."""

    @property
    def lags(self) -> int:
        """Number of states in each window."""
        ...

    @property
    def latent_dims(self) -> tuple[int, ...]:
        """Number of latent states of each hidden layer."""
        ...


AnyLayer = TypeVar("AnyLayer", bound=Regression | DrawnFunctions)


class Chain(eqx.Module, Generic[AnyLayer]):
    """Trained layers, or functions drawn from them: the hidden layers 1 … H, then the output layer.

    Without an output layer the states of the last hidden layer are the measured outputs: a NARX model.
    """

    hidden: tuple[AnyLayer, ...]
    output: AnyLayer | None
    lags: int = eqx.field(static=True)
    degrees: Float[AnyArray, ""] | None = None  # of freedom of Student-t noise at the outputs; None: Gaussian

    @property
    def latent_dims(self) -> tuple[int, ...]:
        """Number of latent states of each hidden layer."""
        return tuple(layer.outputs for layer in self.hidden)

    @property
    def last_layer(self) -> AnyLayer:
        """The layer whose values plus noise are the measured outputs."""
        return self.hidden[-1] if self.output is None else self.output


def find_noise_variance(chain: "Chain[Posterior]") -> AnyArray | np.float64:
    """Variance of the noise at the outputs: σ², and with Student-t noise σ² ν / (ν − 2)."""
    sigma2, degrees = chain.last_layer.sigma2, chain.degrees
    return sigma2 if degrees is None else sigma2 * degrees / (degrees - 2.0)


class StartState(eqx.Module):
    """Joint Gaussian of all windows before the first step, and the inputs before it (oldest first), z-scored.

    `age` is the number of steps since the last measured output, or of a `cold` state since the cold start: the width of
    a calibrated band depends on both. `apart` has the states of the mean-only run and of those that are held inside
    (simulation/extrapolation.py), where the state is that of a run which was not corrected; None: all are at the mean.
    """

    mean: Float[AnyArray, " S"]
    cov: Float[AnyArray, "S S"]
    past_u: Float[AnyArray, "reach Du"]
    age: int = eqx.field(static=True, default=0)
    cold: bool = eqx.field(static=True, default=False)
    apart: Float[AnyArray, "3 S"] | None = None


def locate_windows(chain: Windowed) -> list[np.ndarray]:
    """Return the positions of each hidden layer's window in the joint state."""
    ends = np.cumsum([chain.lags * dim for dim in chain.latent_dims])
    return [np.arange(end - chain.lags * dim, end) for end, dim in zip(ends, chain.latent_dims, strict=True)]


def locate_regressors(chain: Windowed) -> list[np.ndarray]:
    """Return the positions of each hidden layer's regressors: its own window, then that of the layer below.

    The layer below has advanced to the current step before.
    """
    windows = locate_windows(chain)
    return [windows[0], *(np.concatenate([window, below]) for below, window in pairwise(windows))]


def locate_shifted(windows: list[np.ndarray], h: int, dim: int) -> np.ndarray:
    """Return the entries to keep when layer h's window shifts, in order; its `dim` new values were appended at the end.

    The window takes the new values in front and drops its oldest ones.
    """
    size = int(windows[-1][-1]) + 1
    order = np.arange(size)
    order[windows[h]] = np.concatenate([np.arange(size, size + dim), windows[h][:-dim]])
    return order
