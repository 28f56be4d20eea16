"""Reduced-rank approximation of the RBF kernel (Solin & Särkkä), and the transitions that it gives.

The basis has the eigenfunctions of the Laplace operator on a box.
"""

import heapq

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64, Key

from revarb.runtime.numerics import AnyArray


class LaplaceBasis(eqx.Module):
    """Products of sines that vanish at the border of the box [−half_width, half_width].

    The numbers of half waves j_d along every dimension give the eigenvalue Σ_d (π j_d / 2 L_d)²
    (docs/theory/derivation.md, Eq. 64).
    """

    half_width: Float[AnyArray, " D"]
    numbers: Float[AnyArray, "n D"]
    largest: int = eqx.field(static=True)  # of the numbers

    @classmethod
    def build(cls, half_width: Float64[np.ndarray, " D"], count: int) -> "LaplaceBasis":
        """The `count` products with the smallest eigenvalues: the smoothest ones."""
        return cls.from_numbers(half_width, list_numbers(half_width, count))

    @classmethod
    def from_numbers(cls, half_width: Float64[np.ndarray, " D"], numbers: Float64[np.ndarray, "n D"]) -> "LaplaceBasis":
        """The products with these numbers of half waves."""
        return cls(half_width, numbers, int(numbers.max()))

    def evaluate(self, z: Float[AnyArray, "N D"]) -> Float[AnyArray, "N n"]:
        """Values at points inside the box."""
        every = jnp.arange(1.0, self.largest + 1.0)
        sines = jnp.sin((z / self.half_width + 1.0)[:, :, None] * (0.5 * jnp.pi * every))
        # A product with ones and zeros: ten times as fast as indices in a compiled loop over time.
        chosen = (self.numbers.T[:, None] == every[:, None]).astype(z.dtype)
        return jnp.prod(jnp.einsum("zdj,djn->dzn", sines, chosen), axis=0) / jnp.sqrt(jnp.prod(self.half_width))

    def spectral_density(self, lengthscales: Float[AnyArray, " D"]) -> Float[AnyArray, " n"]:
        """Prior variance of every weight: the spectral density of the RBF kernel with variance 1 (Eq. 65)."""
        frequencies = self.numbers * (0.5 * jnp.pi / self.half_width)
        size = jnp.prod(jnp.sqrt(2.0 * jnp.pi) * lengthscales)
        return size * jnp.exp(-0.5 * jnp.sum((frequencies * lengthscales) ** 2, axis=1))


def list_numbers(half_width: Float64[np.ndarray, " D"], count: int) -> Float64[np.ndarray, "n D"]:
    """The numbers of half waves of the `count` products with the smallest Σ_d (j_d / L_d)², smallest first."""
    first = tuple([1] * len(half_width))
    waiting: list[tuple[float, tuple[int, ...]]] = [(0.0, first)]
    known, taken = {first}, []
    while len(taken) < count:
        _, numbers = heapq.heappop(waiting)
        taken.append(numbers)
        for d in range(len(half_width)):
            more = (*numbers[:d], numbers[d] + 1, *numbers[d + 1 :])
            if more not in known:
                known.add(more)
                heapq.heappush(waiting, (float(np.sum((np.array(more) / half_width) ** 2)), more))
    return np.array(taken, dtype=np.float64)


class ReducedRankDynamics(eqx.Module):
    """The transitions of K particles, each with its own weights (a `Dynamics`)."""

    basis: LaplaceBasis
    weights: Float[AnyArray, "K Dx n"]
    process_root: Float[AnyArray, "K Dx Dx"]
    output_std: Float[AnyArray, " Dy"]

    def mean(self, x: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, " Du"]) -> Float[AnyArray, "K Dx"]:
        """Expected next states."""
        return jnp.einsum("kdn,kn->kd", self.weights, compute_features(self.basis, x, u_bar))

    def advance(
        self, x: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, " Du"], key: Key[jax.Array, ""]
    ) -> Float[AnyArray, "K Dx"]:
        """Sampled next states, process noise included."""
        noise = jnp.einsum("kde,ke->kd", self.process_root, jax.random.normal(key, x.shape))
        return self.mean(x, u_bar) + noise


def compute_features(
    basis: LaplaceBasis, x: Float[AnyArray, "N Dx"], u_bar: Float[AnyArray, "#N Du"] | Float[AnyArray, " Du"]
) -> Float[AnyArray, "N n"]:
    """φ = [1, h, ū, sines] at the nearest point of the box, so that f is bounded; h are the last entries of x.

    The box says how many of them f depends on: outputs in front of them have no influence on what follows.
    """
    inputs = jnp.broadcast_to(u_bar, (len(x), u_bar.shape[-1]))
    hidden = x[:, x.shape[1] + inputs.shape[1] - len(basis.half_width) :]
    z = jnp.clip(jnp.concatenate([hidden, inputs], axis=1), -basis.half_width, basis.half_width)
    return jnp.concatenate([jnp.ones((len(x), 1)), z, basis.evaluate(z)], axis=1)
