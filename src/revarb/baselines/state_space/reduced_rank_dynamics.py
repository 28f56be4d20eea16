"""Transitions of a reduced-rank GP: weights of an affine part and of sines on a box."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from revarb.baselines.state_space.laplace_basis import LaplaceBasis
from revarb.runtime.numerics import AnyArray


class ReducedRankDynamics(eqx.Module):
    """The transitions of K particles, each with its own weights (a `Dynamics` of particles.py)."""

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
