"""Evidence lower bound of a GP state-space model, estimated on sub-trajectories (docs/theory/derivation.md, Eq. 63)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from revarb.baselines.state_space.particles import log_likelihoods
from revarb.baselines.state_space.structures import Corrections, Follow, gaussian_divergence
from revarb.baselines.state_space.transition import Transition, kl_divergence
from revarb.gp.layer import Linear
from revarb.runtime.numerics import AnyArray


class RecognisedStart(eqx.Module):
    """q(x_0 | first outputs and inputs of a sub-trajectory): a Gaussian whose mean is linear in them."""

    weights: Linear
    raw_variance: Float[AnyArray, " Dx"]

    @property
    def variance(self) -> Float[AnyArray, " Dx"]:
        """Variances of the first state."""
        return jax.nn.softplus(self.raw_variance)


class SSMParameters(eqx.Module):
    """Everything that is trained; without corrections q(x) follows the model's own transition."""

    transition: Transition
    start: RecognisedStart
    corrections: Corrections | None


class Segments(NamedTuple):
    """Sub-trajectories: inputs, outputs (NaN where missing), what their first states are recognised by, corrections."""

    u_bar: Float[AnyArray, "B T Du"]
    y: Float[AnyArray, "B T Dy"]
    window: Float[AnyArray, "B W"]
    corrections: Corrections | None  # [B, T, Dx]


def estimate_elbo(
    parameters: SSMParameters, segments: Segments, rows: int, follow: Follow, samples: int, key: Key[jax.Array, ""]
) -> Float[AnyArray, ""]:
    """Estimate the bound of records with `rows` samples in all by sampled states of some sub-trajectories (Eq. 63)."""
    batch, length = segments.y.shape[:2]
    draw_key, start_key, walk_key = jax.random.split(key, 3)
    drawn = parameters.transition.draw(draw_key, batch * samples)
    mean = parameters.start.weights.mean(segments.window)
    start_divergence = gaussian_divergence(mean, parameters.start.variance, jnp.zeros_like(mean), jnp.ones(()))
    noise = jax.random.normal(start_key, (batch * samples, mean.shape[1]))
    first = jnp.repeat(mean, samples, axis=0) + jnp.sqrt(parameters.start.variance) * noise
    u_bar, y, corrections = jax.tree.map(
        lambda leaf: jnp.repeat(jnp.swapaxes(leaf, 0, 1), samples, axis=1),
        (segments.u_bar, segments.y, segments.corrections),
    )

    def fit_of(x, y_now):
        return jax.vmap(log_likelihoods, (0, 0, None))(x[:, None], y_now, drawn.output_std)[:, 0]

    def step(x, now):
        u_now, y_now, corrections_now, step_key = now
        walk = follow(drawn, corrections_now, x, u_now, step_key)
        return walk.x, fit_of(walk.x, y_now) - walk.divergence

    later = jax.tree.map(lambda leaf: leaf[1:], (u_bar, y, corrections))
    _, terms = jax.lax.scan(step, first, (*later, jax.random.split(walk_key, length - 1)))
    paths = jnp.sum(terms, axis=0) + fit_of(first, y[0])
    per_segment = jnp.mean(paths.reshape(batch, samples), axis=1) - start_divergence
    return rows / (batch * length) * jnp.sum(per_segment) - kl_divergence(parameters.transition)
