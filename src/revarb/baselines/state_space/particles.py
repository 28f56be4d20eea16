"""Particles of a state-space model: free runs and the bootstrap filter.

The model is x_t = f(x_{t−1}, ū_t) + v_t, y_t = (the first entries of x_t) + e_t (docs/theory/derivation.md, Eq. 56).
"""

from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from revarb.runtime.numerics import AnyArray


@runtime_checkable
class Dynamics(Protocol):
    """The transitions of K particles, each with its own function, and the noise of the outputs. A tree of arrays."""

    @property
    def output_std(self) -> Float[AnyArray, " Dy"]:
        """Standard deviation of the noise of every output."""
        ...

    def mean(self, x: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, " Du"]) -> Float[AnyArray, "K Dx"]:
        """Expected next states."""
        ...

    def advance(
        self, x: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, " Du"], key: Key[jax.Array, ""]
    ) -> Float[AnyArray, "K Dx"]:
        """Sampled next states, process noise included."""
        ...


@jax.jit
def run_mean_states(
    dynamics: Dynamics, first: Float[AnyArray, " Dx"], u_bar: Float[AnyArray, "T Du"]
) -> Float[AnyArray, "T Dx"]:
    """Run one particle by the expected next state, without noise."""

    def step(x, inputs_now):
        x = dynamics.mean(x, inputs_now)
        return x, x[0]

    return jax.lax.scan(step, first[None], u_bar)[1]


@jax.jit
def run_particles(
    dynamics: Dynamics, first: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, "T Du"], key: Key[jax.Array, ""]
) -> Float[AnyArray, "T K Dx"]:
    """Run sampled particles."""

    def step(x, now):
        x = dynamics.advance(x, *now)
        return x, x

    return jax.lax.scan(step, first, (u_bar, jax.random.split(key, len(u_bar))))[1]


@jax.jit
def filter_particles(
    dynamics: Dynamics,
    first: Float[AnyArray, "K Dx"],
    u_bar: Float[AnyArray, "T Du"],
    y: Float[AnyArray, "T Dy"],
    key: Key[jax.Array, ""],
) -> tuple[Float[AnyArray, "K Dx"], Float[AnyArray, ""]]:
    """Filter measured outputs (NaN where missing) by the bootstrap filter; return the last particles and log p(y).

    States are resampled, functions stay where they are: a short window tells much of the state and little of f.
    """

    def step(x, now):
        inputs_now, measured, step_key = now
        move_key, resample_key = jax.random.split(step_key)
        x = dynamics.advance(x, inputs_now, move_key)
        log_weights = log_likelihoods(x, measured, dynamics.output_std)
        evidence = jax.nn.logsumexp(log_weights) - jnp.log(len(x))
        return x[resample(jax.nn.softmax(log_weights), resample_key)], evidence

    keys = jax.random.split(key, len(u_bar))
    last, evidence = jax.lax.scan(step, first, (u_bar, y, keys))
    return last, jnp.sum(evidence)


def log_likelihoods(
    x: Float[AnyArray, "K Dx"], y: Float[AnyArray, " Dy"], output_std: Float[AnyArray, " Dy"]
) -> Float[AnyArray, " K"]:
    """log p(y | x) of every particle; a missing output (NaN) says nothing."""
    measured = jnp.isfinite(y)
    errors = jnp.where(measured, jnp.where(measured, y, 0.0) - x[:, : len(y)], 0.0)
    constant = jnp.where(measured, jnp.log(output_std) + 0.5 * jnp.log(2.0 * jnp.pi), 0.0)
    return -jnp.sum(0.5 * (errors / output_std) ** 2 + constant, axis=1)


def resample(weights: Float[AnyArray, " K"], key: Key[jax.Array, ""]) -> AnyArray:
    """Systematic resampling: the particles to keep, each about K times its weight often."""
    count = len(weights)
    points = (jnp.arange(count) + jax.random.uniform(key)) / count
    return jnp.searchsorted(jnp.cumsum(weights), points).clip(max=count - 1)
