"""Free run of the joint Gaussian of all windows, with its full covariance (docs/theory/derivation.md, Eqs. 33 and 34)."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from revarb.gp.posterior import Posterior, known_factor, predict_gaussian, split_posterior
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import (
    Chain,
    StartState,
    regressor_positions,
    reset_mask,
    reset_where,
    shifted_positions,
    window_positions,
)


class Moments(NamedTuple):
    """Mean and variance of the outputs, noise included."""

    mean: Float[AnyArray, "*T Dy"]
    variance: Float[AnyArray, "*T Dy"]


class JointState(NamedTuple):
    """The joint Gaussian of all windows."""

    mean: Float[AnyArray, " S"]
    cov: Float[AnyArray, "S S"]


class OutputMoments(NamedTuple):
    """What the joint state says of y, noise included, and the covariance of the two."""

    mean: Float[AnyArray, " Dy"]
    cov: Float[AnyArray, "Dy Dy"]
    cross: Float[AnyArray, "S Dy"]


@jax.jit
def run_moments(
    chain: Chain[Posterior], start: StartState, u_bar: Float[AnyArray, "T Du"], reset_row: int | Int[AnyArray, ""]
) -> Moments:
    """Moments of the outputs, all covariances between the windows' states kept."""
    advance, observe = advance_moments(chain), observe_moments(chain)

    def step(state, now):
        factor, is_reset = now
        state = advance(reset_where(state, JointState(start.mean, start.cov), is_reset), factor)
        seen = observe(state)
        return state, Moments(seen.mean, jnp.diagonal(seen.cov))

    steps = (known_factor(chain.hidden[0], u_bar), reset_mask(u_bar, reset_row))
    return jax.lax.scan(step, JointState(start.mean, start.cov), steps)[1]


def advance_moments(chain: Chain[Posterior]) -> Callable[[JointState, Float[AnyArray, " M"]], JointState]:
    """One step of the joint Gaussian through all hidden layers, given the factor of the step's inputs."""
    windows, wiring = window_positions(chain), regressor_positions(chain)
    splits = [split_posterior(layer, len(inputs)) for layer, inputs in zip(chain.hidden, wiring, strict=True)]
    certain = [jnp.ones(layer.zeta.shape[0]) for layer in chain.hidden]

    def advance(state: JointState, factor: AnyArray) -> JointState:
        mean, cov = state
        for h, (split, inputs) in enumerate(zip(splits, wiring, strict=True)):
            f = predict_gaussian(split, mean[inputs], cov[inputs][:, inputs], factor if h == 0 else certain[h])
            cross = cov[:, inputs] @ f.gain
            noisy = f.cov + split.layer.sigma2 * jnp.eye(len(f.mean))
            order = shifted_positions(windows, h, len(f.mean))
            mean = jnp.concatenate([mean, f.mean])[order]
            cov = jnp.block([[cov, cross], [cross.T, noisy]])[order][:, order]
        return JointState(mean, cov)

    return advance


def observe_moments(chain: Chain[Posterior]) -> Callable[[JointState], OutputMoments]:
    """From the joint state to y, by way of the last hidden layer's window."""
    window = window_positions(chain)[-1]
    if chain.output is None:
        newest = window[: chain.latent_dims[-1]]
        return lambda state: OutputMoments(state.mean[newest], state.cov[newest][:, newest], state.cov[:, newest])
    output, sigma2 = split_posterior(chain.output, len(window)), chain.output.sigma2
    certain = jnp.ones(chain.output.zeta.shape[0])

    def observe(state: JointState) -> OutputMoments:
        g = predict_gaussian(output, state.mean[window], state.cov[window][:, window], certain)
        noisy = g.cov + sigma2 * jnp.eye(len(g.mean))
        return OutputMoments(g.mean, noisy, state.cov[:, window] @ g.gain)

    return observe


@jax.jit
def observe_independent(layer: Posterior, mean: Float[AnyArray, "R D"], variance: Float[AnyArray, "R D"]) -> Moments:
    """Moments of y, noise included, for rows of regressors that are independent of each other."""
    split, certain = split_posterior(layer, mean.shape[1]), jnp.ones(layer.zeta.shape[0])

    def observe(row: tuple[AnyArray, AnyArray]) -> Moments:
        g = predict_gaussian(split, row[0], jnp.diag(row[1]), certain)
        return Moments(g.mean, jnp.diagonal(g.cov) + layer.sigma2)

    return jax.lax.map(observe, (mean, variance))
