"""Variational inference in a GP state-space model: structures of q(x) and the stochastic bound.

A structure says how a step of the variational states follows the transition: it draws the next states and gives the
divergence of its step from that of the model (docs/theory/derivation.md, Eqs. 62 and 63).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64, Int, Key

from revarb.baselines.state_space.fitted_state_space import log_likelihoods
from revarb.baselines.state_space.transition import (
    PROCESS_VARIANCE,
    DrawnTransition,
    Transition,
    kl_divergence,
)
from revarb.fitting.initial_values import fill_gaps, initialise_means
from revarb.gp.layer import Linear, inverse_softplus
from revarb.runtime.numerics import AnyArray

MARKOV_GAIN = 0.5  # the corrected states start half way between the transition and the guess


class Corrections(eqx.Module):
    """Of a step: next state = gain · (what the structure says) + shift + noise. Per sample of the records."""

    gain: Float[AnyArray, "*N Dx Dx"]
    shift: Float[AnyArray, "*N Dx"]
    raw_variance: Float[AnyArray, "*N Dx"]

    @property
    def variance(self) -> Float[AnyArray, "*N Dx"]:
        """Variances of the noise."""
        return jax.nn.softplus(self.raw_variance)


class SampledStep(NamedTuple):
    """What a step of K particles starts from: their states, inputs and corrections."""

    x: Float[AnyArray, "K Dx"]
    u_bar: Float[AnyArray, "K Du"]
    corrections: Corrections | None


class Walk(NamedTuple):
    """Sampled next states, and the divergence of their step, per particle."""

    x: Float[AnyArray, "K Dx"]
    divergence: Float[AnyArray, " K"]


def follow_prior(drawn: DrawnTransition, now: SampledStep, key: Key[jax.Array, ""]) -> Walk:
    """q(x_t | x_{t−1}) is the model's own transition (Doerr et al. 2018): nothing diverges."""
    return Walk(drawn.advance(now.x, now.u_bar, key), jnp.zeros(len(now.x)))


def follow_corrected(drawn: DrawnTransition, now: SampledStep, key: Key[jax.Array, ""]) -> Walk:
    """q(x_t | f_t) = N(A_t f_t + b_t, S_t), f_t a draw of the transition (Ialongo et al. 2019)."""
    function_key, step_key = jax.random.split(key)
    mean, variance = drawn.predict(now.x, now.u_bar)
    f = mean + jnp.sqrt(variance) * jax.random.normal(function_key, now.x.shape)
    return _correct(now.corrections, f, f, drawn.process_variance, step_key)


def follow_chain(drawn: DrawnTransition, now: SampledStep, key: Key[jax.Array, ""]) -> Walk:
    """q(x_t | x_{t−1}) = N(A_t x_{t−1} + b_t, S_t), independent of f (mean-field; Frigola et al. 2014)."""
    mean, variance = drawn.predict(now.x, now.u_bar)
    moved, divergence = _correct(now.corrections, now.x, mean, drawn.process_variance, key)
    return Walk(moved, divergence + 0.5 * jnp.sum(variance / drawn.process_variance, axis=1))


def _correct(
    corrections: Corrections | None,
    before: Float[AnyArray, "K Dx"],
    expected: Float[AnyArray, "K Dx"],
    process_variance: Float[AnyArray, " Dx"],
    key: Key[jax.Array, ""],
) -> Walk:
    # The corrected step, and its divergence from N(expected, Q).
    assert corrections is not None
    mean = jnp.einsum("kij,kj->ki", corrections.gain, before) + corrections.shift
    moved = mean + jnp.sqrt(corrections.variance) * jax.random.normal(key, mean.shape)
    return Walk(moved, gaussian_divergence(mean, corrections.variance, expected, process_variance))


def gaussian_divergence(
    mean: Float[AnyArray, "K Dx"],
    variance: Float[AnyArray, "..."],
    prior_mean: Float[AnyArray, "..."],
    prior_variance: Float[AnyArray, "..."],
) -> Float[AnyArray, " K"]:
    """KL divergence of N(mean, variance) from N(prior_mean, prior_variance), per particle; the others are broadcast."""
    ratio = variance / prior_variance
    return 0.5 * jnp.sum((mean - prior_mean) ** 2 / prior_variance + ratio - 1.0 - jnp.log(ratio), axis=1)


Follow = Callable[[DrawnTransition, SampledStep, jax.Array], Walk]
STRUCTURES: dict[str, Follow] = {"prior": follow_prior, "mean-field": follow_chain, "markov": follow_corrected}


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
    parameters: SSMParameters,
    segments: Segments,
    rows: int | Int[AnyArray, ""],
    follow: Follow,
    samples: int,
    key: Key[jax.Array, ""],
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
        walk = follow(drawn, SampledStep(x, u_now, corrections_now), step_key)
        return walk.x, fit_of(walk.x, y_now) - walk.divergence

    later = jax.tree.map(lambda leaf: leaf[1:], (u_bar, y, corrections))
    _, terms = jax.lax.scan(step, first, (*later, jax.random.split(walk_key, length - 1)))
    paths = jnp.sum(terms, axis=0) + fit_of(first, y[0])
    per_segment = jnp.mean(paths.reshape(batch, samples), axis=1) - start_divergence
    return rows / (batch * length) * jnp.sum(per_segment) - kl_divergence(parameters.transition)


def guess_states(outputs: Sequence[Float64[np.ndarray, "_ Dy"]], states: int) -> Float64[np.ndarray, "N Dx"]:
    """Guess the states of all records: the outputs, interpolated where missing, then their differences.

    Differences have unit variance.
    """
    filled = [fill_gaps(y) for y in outputs]
    measured = np.concatenate(filled)
    if states == measured.shape[1]:
        return measured
    differences = initialise_means([np.gradient(y, axis=0) for y in filled], states - measured.shape[1])
    widths = differences.std(axis=0)
    return np.concatenate([measured, differences / np.where(widths > 0.0, widths, 1.0)], axis=1)


def start_corrections(structure: str, x: Float64[np.ndarray, "N Dx"]) -> Corrections | None:
    """No correction of the transition, or for the mean-field chain the guessed states themselves."""
    if structure == "prior":
        return None
    gain = MARKOV_GAIN if structure == "markov" else 0.0
    raw_variance = np.full(x.shape, inverse_softplus(PROCESS_VARIANCE))
    return Corrections(gain * np.stack([np.eye(x.shape[1])] * len(x)), (1.0 - gain) * x, raw_variance)
