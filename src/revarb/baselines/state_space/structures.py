"""Structures of q(x): how a step of the variational states follows the transition (docs/theory/derivation.md, Eq. 62).

A structure draws the next states and gives the divergence of its step from that of the model.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from revarb.baselines.state_space.transition import DrawnTransition
from revarb.runtime.numerics import AnyArray


class Corrections(eqx.Module):
    """Of a step: next state = gain · (what the structure says) + shift + noise. Per sample of the records."""

    gain: Float[AnyArray, "*N Dx Dx"]
    shift: Float[AnyArray, "*N Dx"]
    raw_variance: Float[AnyArray, "*N Dx"]

    @property
    def variance(self) -> Float[AnyArray, "*N Dx"]:
        """Variances of the noise."""
        return jax.nn.softplus(self.raw_variance)

    def expect(self, x: Float[AnyArray, "K Dx"]) -> Float[AnyArray, "K Dx"]:
        """Expected next states of particles, each with its own correction."""
        return jnp.einsum("kij,kj->ki", self.gain, x) + self.shift


class Walk(NamedTuple):
    """Sampled next states, and the divergence of their step, per particle."""

    x: Float[AnyArray, "K Dx"]
    divergence: Float[AnyArray, " K"]


def follow_prior(
    drawn: DrawnTransition,
    corrections: Corrections | None,
    x: Float[AnyArray, "K Dx"],
    u_bar: Float[AnyArray, "K Du"],
    key: Key[jax.Array, ""],
) -> Walk:
    """q(x_t | x_{t−1}) is the model's own transition (Doerr et al. 2018): nothing diverges."""
    return Walk(drawn.advance(x, u_bar, key), jnp.zeros(len(x)))


def follow_corrected(
    drawn: DrawnTransition,
    corrections: Corrections | None,
    x: Float[AnyArray, "K Dx"],
    u_bar: Float[AnyArray, "K Du"],
    key: Key[jax.Array, ""],
) -> Walk:
    """q(x_t | f_t) = N(A_t f_t + b_t, S_t), f_t a draw of the transition (Ialongo et al. 2019)."""
    assert corrections is not None
    function_key, step_key = jax.random.split(key)
    mean, variance = drawn.predict(x, u_bar)
    f = mean + jnp.sqrt(variance) * jax.random.normal(function_key, x.shape)
    expected = corrections.expect(f)
    moved = expected + jnp.sqrt(corrections.variance) * jax.random.normal(step_key, x.shape)
    return Walk(moved, gaussian_divergence(expected, corrections.variance, f, drawn.process_variance))


def follow_chain(
    drawn: DrawnTransition,
    corrections: Corrections | None,
    x: Float[AnyArray, "K Dx"],
    u_bar: Float[AnyArray, "K Du"],
    key: Key[jax.Array, ""],
) -> Walk:
    """q(x_t | x_{t−1}) = N(A_t x_{t−1} + b_t, S_t), independent of f (mean-field; Frigola et al. 2014)."""
    assert corrections is not None
    mean, variance = drawn.predict(x, u_bar)
    expected = corrections.expect(x)
    moved = expected + jnp.sqrt(corrections.variance) * jax.random.normal(key, x.shape)
    divergence = gaussian_divergence(expected, corrections.variance, mean, drawn.process_variance)
    return Walk(moved, divergence + 0.5 * jnp.sum(variance / drawn.process_variance, axis=1))


def gaussian_divergence(
    mean: Float[AnyArray, "K Dx"],
    variance: Float[AnyArray, "..."],
    prior_mean: Float[AnyArray, "..."],
    prior_variance: Float[AnyArray, "..."],
) -> Float[AnyArray, " K"]:
    """KL divergence of N(mean, variance) from N(prior_mean, prior_variance), per particle; the others are broadcast."""
    ratio = variance / prior_variance
    return 0.5 * jnp.sum((mean - prior_mean) ** 2 / prior_variance + ratio - 1.0 - jnp.log(ratio), axis=1)


Follow = Callable[[DrawnTransition, Corrections | None, AnyArray, AnyArray, jax.Array], Walk]
STRUCTURES: dict[str, Follow] = {"prior": follow_prior, "mean-field": follow_chain, "markov": follow_corrected}
