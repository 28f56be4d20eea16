"""Filtering: latent states inferred from measured outputs (docs/theory/derivation.md, Eqs. 43, 44 and 55).

Assumed-density filtering: after every step of the free run the joint Gaussian of states and output is conditioned on
the measured output. Missing outputs (NaN) are skipped. Predictions can start from the filtered state at any sample.

Fixed-lag smoothing: the joint state has the last L states of every layer, conditioned on all outputs so far. A state is
read off where it is about to leave its window, and so knows the outputs up to L − 1 samples later.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64, Int

from revarb.gp.posterior import KnownPart, Posterior
from revarb.runtime.numerics import AnyArray, cut_rows, pad_rows
from revarb.simulation.chain import Chain, StartState, find_noise_variance, locate_windows
from revarb.simulation.extrapolation import (
    Extrapolation,
    KnownRange,
    advance_apart,
    begin_apart,
    correct_apart,
    run_extrapolation,
)
from revarb.simulation.moments import (
    JointState,
    Moments,
    OutputMoments,
    advance_moments,
    compute_known_rows,
    observe_moments,
    run_moments,
)

WEIGHTINGS = 5  # of a measurement with Student-t noise: what is an outlier is settled by then


def filter_states(
    chain: Chain[Posterior], start: StartState, u_bar: Float[AnyArray, "T Du"], y: Float[AnyArray, "T Dy"]
) -> JointState:
    """Infer the joint state after the last row of a record from its outputs (Eq. 44)."""
    padded = pad_rows(y, np.nan)
    return _filter_rows(chain, start, compute_known_rows(chain.hidden[0], u_bar, len(padded)), padded, len(y))


@jax.jit
def _filter_rows(
    chain: Chain[Posterior],
    start: StartState,
    known: KnownPart,
    y: Float[AnyArray, "T Dy"],
    count: int | Int[AnyArray, ""],
) -> JointState:
    # The first `count` rows.
    filter_step = _make_filter_step(chain)

    def step(row, state):
        return filter_step(state, jax.tree.map(lambda values: values[row], known), y[row])

    first = JointState(jnp.asarray(start.mean), jnp.asarray(start.cov))
    return jax.lax.fori_loop(0, count, step, first)


def predict_ahead(
    fitted: Chain[Posterior],
    calibrated: Chain[Posterior],
    start: StartState,
    u_bar: Float[AnyArray, "T Du"],
    y: Float[AnyArray, "T Dy"],
    horizon: int,
    known_range: KnownRange,
) -> tuple[Moments, Extrapolation]:
    """Predict every row from the outputs up to `horizon` rows before it; the first `horizon` rows are a free run.

    The states are inferred with the noise of the fit, and predicted with the calibrated noise. Beside the moments is
    how far they extrapolate.
    """
    padded = pad_rows(y, np.nan)
    steps = StepInputs(compute_known_rows(fitted.hidden[0], u_bar, len(padded)), pad_rows(u_bar))
    apart = begin_apart(start.mean)
    free = run_moments(calibrated, start, u_bar[:horizon])
    first = free, run_extrapolation(calibrated, apart, u_bar[:horizon], known_range)
    later = _predict_later(fitted, calibrated, start, steps, padded, horizon, known_range)
    later = cut_rows(later, len(y) - horizon)
    return jax.tree.map(lambda one, other: np.concatenate([one, other]), first, later)


class StepInputs(NamedTuple):
    """The inputs of every step, and what they contribute to the first layer."""

    known: KnownPart
    u_bar: Float[AnyArray, "T Du"]


@partial(jax.jit, static_argnames="horizon")
def _predict_later(
    fitted: Chain[Posterior],
    calibrated: Chain[Posterior],
    start: StartState,
    steps: StepInputs,
    y: Float[AnyArray, "T Dy"],
    horizon: int,
    known_range: KnownRange,
) -> tuple[Moments, Extrapolation]:
    # The rows from `horizon` on.
    filter_step = _make_filter_step(fitted)
    advance_calibrated, observe_calibrated = advance_moments(calibrated), observe_moments(calibrated)

    def predict_step(states, now):
        state, apart = states
        state = advance_calibrated(state, now.known)
        apart, beyond = advance_apart(calibrated, apart, now.u_bar, known_range)
        output = observe_calibrated(state)
        return (state, apart), (Moments(output.mean, jnp.diagonal(output.cov)), beyond)

    def step(states, row):
        state, apart = states
        now = jax.tree.map(lambda values: values[row], steps)
        state = filter_step(state, now.known, y[row])
        apart, _ = advance_apart(calibrated, apart, now.u_bar, known_range)
        states = state, correct_apart(apart, state.mean, y[row])
        following = jax.tree.map(lambda values: jax.lax.dynamic_slice_in_dim(values, row + 1, horizon), steps)
        return states, jax.tree.map(lambda values: values[-1], jax.lax.scan(predict_step, states, following)[1])

    first = JointState(start.mean, start.cov), begin_apart(start.mean)
    return jax.lax.scan(step, first, jnp.arange(y.shape[0] - horizon))[1]


def smooth_means(
    chain: Chain[Posterior], start: StartState, u_bar: Float64[np.ndarray, "T Du"], y: Float64[np.ndarray, "T Dy"]
) -> list[Float64[np.ndarray, "T _"]]:
    """Infer the mean of every state of every hidden layer at the rows of a record; missing outputs are NaN."""
    padded = pad_rows(y, np.nan)
    known = compute_known_rows(chain.hidden[0], u_bar, len(padded))
    joint = np.asarray(cut_rows(_filter_means(chain, start, known, padded), len(y)))
    return [
        _read_window(joint[:, window].reshape(len(joint), chain.lags, dim))
        for window, dim in zip(locate_windows(chain), chain.latent_dims, strict=True)
    ]


def _read_window(windows: Float64[np.ndarray, "T L Dx"]) -> Float64[np.ndarray, "T Dx"]:
    # Newest first: that of row t has the states t, …, t − L + 1. The last L states are those of the last window.
    lags = windows.shape[1]
    return np.concatenate([windows[lags - 1 :, -1], windows[-1, : min(lags - 1, len(windows))][::-1]])[-len(windows) :]


@jax.jit
def _filter_means(
    chain: Chain[Posterior], start: StartState, known: KnownPart, y: Float[AnyArray, "T Dy"]
) -> Float[AnyArray, "T S"]:
    filter_step = _make_filter_step(chain)

    def step(state, now):
        state = filter_step(state, *now)
        return state, state.mean

    return jax.lax.scan(step, JointState(start.mean, start.cov), (known, y))[1]


def _make_filter_step(chain: Chain[Posterior]) -> Callable[[JointState, KnownPart, AnyArray], JointState]:
    # Advance by one step (Eqs. 32 and 33), then condition on the measured outputs.
    advance, observe, condition = advance_moments(chain), observe_moments(chain), make_update(chain)

    def filter_step(state: JointState, known: KnownPart, y: Float[AnyArray, " Dy"]) -> JointState:
        state = advance(state, known)
        return condition(state, observe(state), y)

    return filter_step


def make_update(chain: Chain[Posterior]) -> Callable[[JointState, OutputMoments, AnyArray], JointState]:
    """Make the function that conditions the joint state on measured outputs, with the noise of the chain."""
    if chain.degrees is None:
        return update
    sigma2, degrees, variance = chain.last_layer.sigma2, chain.degrees, find_noise_variance(chain)

    def update_weighted(state: JointState, predicted: OutputMoments, y: Float[AnyArray, " Dy"]) -> JointState:
        # Eq. 55. A measurement that is far from its prediction starts with little weight, and so pulls no state along.
        measured = ~jnp.isnan(y)
        error = jnp.where(measured, y - predicted.mean, 0.0)
        g_cov = jnp.where(measured[:, None] & measured[None, :], predicted.cov - variance * jnp.eye(len(y)), 0.0)
        weights = (degrees + 1.0) / (degrees + error**2 / jnp.diagonal(predicted.cov))
        for _ in range(WEIGHTINGS):
            gain = jnp.linalg.solve(g_cov + jnp.diag(sigma2 / weights), g_cov).T
            squares = (error - gain @ error) ** 2 + jnp.diagonal(g_cov - gain @ g_cov)
            weights = (degrees + 1.0) / (degrees + squares / sigma2)
        return update(state, predicted._replace(cov=g_cov + jnp.diag(sigma2 / weights)), y)

    return update_weighted


def update(state: JointState, predicted: OutputMoments, y: Float[AnyArray, " Dy"]) -> JointState:
    """Condition the joint state on the measured entries of y (Eq. 43)."""
    measured = ~jnp.isnan(y)
    error = jnp.where(measured, y - predicted.mean, 0.0)
    # Without covariance with the state and with the other outputs, a missing output has no effect in the solve.
    cross = jnp.where(measured, predicted.cross, 0.0)
    both_measured = measured[:, None] & measured[None, :]
    cov = jnp.where(both_measured, predicted.cov, 0.0) + jnp.diag(jnp.where(measured, 0.0, 1.0))
    gain = jnp.linalg.solve(cov, cross.T).T
    updated_cov = state.cov - gain @ cross.T
    return JointState(state.mean + gain @ error, 0.5 * (updated_cov + updated_cov.T))
