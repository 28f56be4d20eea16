"""Free run of the joint Gaussian of all windows, with its full covariance.

docs/theory/derivation.md, Eqs. 31 to 34, and Eq. 39 for a chain without an output layer.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from revarb.gp.posterior import (
    KnownPart,
    Posterior,
    compute_known_part,
    nothing_known,
    predict_gaussian,
    split_posterior,
)
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import (
    Chain,
    StartState,
    find_noise_variance,
    locate_regressors,
    locate_shifted,
    locate_windows,
)

PROGRAM_ROWS = 32  # of the compiled program that runs of all lengths share


class Moments(NamedTuple):
    """Mean and variance of the outputs, noise included."""

    mean: Float[AnyArray, "*T Dy"]
    variance: Float[AnyArray, "*T Dy"]


class JointState(NamedTuple):
    """Joint Gaussian of all windows."""

    mean: Float[AnyArray, " S"]
    cov: Float[AnyArray, "S S"]


class OutputMoments(NamedTuple):
    """Moments of y, noise included, and its covariance with the joint state."""

    mean: Float[AnyArray, " Dy"]
    cov: Float[AnyArray, "Dy Dy"]
    cross: Float[AnyArray, "S Dy"]


def run_moments(chain: Chain[Posterior], start: StartState, u_bar: Float[AnyArray, "T Du"]) -> Moments:
    """Simulate the moments of the outputs; all covariances between states of the windows are kept."""
    rows = len(u_bar)
    known = compute_known_rows(chain.hidden[0], u_bar, -(-rows // PROGRAM_ROWS) * PROGRAM_ROWS)
    moments = scan_chunks(chain, JointState(start.mean, start.cov), known)[1]
    return Moments(moments.mean[:rows], moments.variance[:rows])


def scan_chunks(chain: Chain[Posterior], state: JointState, known: KnownPart) -> tuple[JointState, Moments]:
    """Simulate by one compiled program of `PROGRAM_ROWS` rows, whatever their number; return the last state, too."""
    known = jax.tree.map(np.asarray, known)
    chain, state = jax.device_put((chain, state))
    parts = []
    for begin in range(0, max(len(known.factor), 1), PROGRAM_ROWS):
        now = jax.tree.map(lambda values, begin=begin: values[begin : begin + PROGRAM_ROWS], known)
        state, part = scan_moments(chain, state, now)
        parts.append(part)
    return state, Moments(*(np.concatenate(each) for each in zip(*parts, strict=True)))


@partial(jax.jit, static_argnames="size")
def compute_known_rows(layer: Posterior, u_bar: Float[AnyArray, "T Du"], size: int) -> KnownPart:
    """What the known inputs contribute to every step, with zeros appended up to `size` rows.

    It is computed for the given rows only: the last digits of a matrix product depend on its size.
    """
    known = compute_known_part(layer, u_bar)
    return jax.tree.map(lambda values: jnp.pad(values, ((0, size - values.shape[0]), (0, 0))), known)


@jax.jit
def scan_moments(
    chain: Chain[Posterior], start: JointState | StartState, known: KnownPart
) -> tuple[JointState, Moments]:
    """`run_moments` without appended rows, and the last state; `known` has a row for every step."""
    advance, observe = advance_moments(chain), observe_moments(chain)

    def step(state, known_now):
        state = advance(state, known_now)
        output = observe(state)
        return state, Moments(output.mean, jnp.diagonal(output.cov))

    return jax.lax.scan(step, JointState(start.mean, start.cov), known)


def advance_moments(chain: Chain[Posterior]) -> Callable[[JointState, KnownPart], JointState]:
    """Make the function that advances the joint Gaussian by one step through all hidden layers (Eqs. 32, 33).

    Its second argument is the contribution of the known inputs of the step (`compute_known_part`).
    """
    windows, regressors = locate_windows(chain), locate_regressors(chain)
    splits = [split_posterior(layer, len(inputs)) for layer, inputs in zip(chain.hidden, regressors, strict=True)]
    no_inputs = [nothing_known(layer) for layer in chain.hidden]

    def advance(state: JointState, known: KnownPart) -> JointState:
        mean, cov = state
        for h, (split, inputs) in enumerate(zip(splits, regressors, strict=True)):
            f = predict_gaussian(split, mean[inputs], cov[inputs][:, inputs], known if h == 0 else no_inputs[h])
            cross = cov[:, inputs] @ f.gain
            noisy = f.cov + split.layer.sigma2 * jnp.eye(len(f.mean))
            order = locate_shifted(windows, h, len(f.mean))
            mean = jnp.concatenate([mean, f.mean])[order]
            cov = jnp.block([[cov, cross], [cross.T, noisy]])[order][:, order]
        return JointState(mean, cov)

    return advance


def observe_moments(chain: Chain[Posterior]) -> Callable[[JointState], OutputMoments]:
    """Make the function that predicts y from the joint state (Eq. 34, or Eq. 39 without an output layer)."""
    window = locate_windows(chain)[-1]
    if chain.output is None:
        newest = window[: chain.latent_dims[-1]]
        return lambda state: OutputMoments(state.mean[newest], state.cov[newest][:, newest], state.cov[:, newest])
    output, noise = split_posterior(chain.output, len(window)), find_noise_variance(chain)
    no_inputs = nothing_known(chain.output)

    def observe(state: JointState) -> OutputMoments:
        g = predict_gaussian(output, state.mean[window], state.cov[window][:, window], no_inputs)
        noisy = g.cov + noise * jnp.eye(len(g.mean))
        return OutputMoments(g.mean, noisy, state.cov[:, window] @ g.gain)

    return observe


@jax.jit
def observe_independent(
    chain: Chain[Posterior], mean: Float[AnyArray, "R D"], variance: Float[AnyArray, "R D"]
) -> Moments:
    """Predict the moments of y, noise included, for rows of regressors of the output with independent entries."""
    layer, noise = chain.last_layer, find_noise_variance(chain)
    split, no_inputs = split_posterior(layer, mean.shape[1]), nothing_known(layer)

    def observe(row: tuple[AnyArray, AnyArray]) -> Moments:
        g = predict_gaussian(split, row[0], jnp.diag(row[1]), no_inputs)
        return Moments(g.mean, jnp.diagonal(g.cov) + noise)

    return jax.lax.map(observe, (mean, variance))
