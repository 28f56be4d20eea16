"""Filtering and prediction of NARX models: their states are the measured outputs.

A measured output overwrites the state that the model predicts for it; where an output is missing (NaN) the prediction
stays (docs/theory/derivation.md, Eq. 44a). A GP-NARX also has a variance (Eqs. 39 and 43): its states are the outputs
with their noise, a measured one is known exactly, and a missing one keeps the moments of its prediction.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from revarb.gp.posterior import KnownPart, Posterior, compute_known_part, predict_certain
from revarb.runtime.numerics import AnyArray, pad_rows
from revarb.simulation.chain import Chain, StartState, locate_shifted, locate_windows
from revarb.simulation.extrapolation import (
    Extrapolation,
    KnownRange,
    advance_apart,
    begin_apart,
    correct_apart,
    scan_extrapolation,
)
from revarb.simulation.filtering import update
from revarb.simulation.mean import advance_mean, scan_mean
from revarb.simulation.moments import JointState, Moments, OutputMoments, advance_moments, observe_moments, scan_moments

RANK = 1e-9  # of the largest singular value: outputs that are the same at all lags have a covariance of rank one


def filter_narx(
    chain: Chain, start: StartState, u_bar: Float[AnyArray, "T Du"], y: Float[AnyArray, "T Dy"]
) -> JointState:
    """Infer the state after the last row of a record; its outputs count as known exactly: the covariance is zero.

    If they are fewer than the lags, the outputs before them follow from the start: it is the distribution of a window,
    given its newest outputs.
    """
    state = np.array(_filter_rows(chain, start.mean, pad_rows(u_bar), pad_rows(y), len(y)), dtype=np.float64)
    cov, known = np.zeros_like(start.cov, dtype=np.float64), y.shape[0] * y.shape[1]
    if known < len(state):
        prior = np.asarray(start.cov, dtype=np.float64)
        gain = prior[known:, :known] @ np.linalg.pinv(prior[:known, :known], rcond=RANK, hermitian=True)
        state[known:] = start.mean[known:] + gain @ (state[:known] - start.mean[:known])
        left = prior[known:, known:] - gain @ prior[:known, known:]
        cov[known:, known:] = 0.5 * (left + left.T)
    return JointState(state, cov)


@jax.jit
def _filter_rows(
    chain: Chain,
    first: Float[AnyArray, " S"],
    u_bar: Float[AnyArray, "T Du"],
    y: Float[AnyArray, "T Dy"],
    count: int | Int[AnyArray, ""],
) -> Float[AnyArray, " S"]:
    # The first `count` rows.
    def step(row, state):
        return advance_measured(chain, state, jnp.asarray(u_bar)[row], jnp.asarray(y)[row])

    return jax.lax.fori_loop(0, count, step, jnp.asarray(first))


@partial(jax.jit, static_argnames="horizon")
def predict_narx(
    chain: Chain,
    start: StartState,
    u_bar: Float[AnyArray, "T Du"],
    y: Float[AnyArray, "T Dy"],
    horizon: int,
    known: KnownRange,
) -> tuple[Float[AnyArray, "T Dy"], Extrapolation]:
    """Predict every row from the outputs up to `horizon` rows before it; the first `horizon` rows are a free run.

    Beside the means is how far they extrapolate.
    """

    def filter_step(apart, now):
        state = advance_measured(chain, apart[0], *now)
        apart = correct_apart(advance_apart(chain, apart, now[0], known)[0], state, now[1])
        return apart, apart

    def predict_step(k, now):
        following = jax.lax.dynamic_slice_in_dim(inputs, k + 1, rows)
        apart, beyond = jax.vmap(advance_apart, in_axes=(None, 0, 0, None))(chain, now[0], following, known)
        return apart, beyond

    inputs, rows = jnp.asarray(u_bar), y.shape[0] - horizon
    mean = jnp.asarray(start.mean)
    first = scan_mean(chain, start, u_bar[:horizon])
    beyond = scan_extrapolation(chain, begin_apart(mean), u_bar[:horizon], known)
    filtered = jax.lax.scan(filter_step, begin_apart(mean), (u_bar[:rows], y[:rows]))[1]
    # All rows advance together; the newest outputs are the first entries of a state.
    begin = filtered, Extrapolation(jnp.zeros_like(y[horizon:]), jnp.zeros(rows))
    apart, later = jax.lax.fori_loop(0, horizon, predict_step, begin)
    found = jax.tree.map(lambda one, other: jnp.concatenate([one, other]), beyond, later)
    return jnp.concatenate([first, apart[:, 0, : y.shape[1]]]), found


def advance_measured(
    chain: Chain, state: Float[AnyArray, " S"], inputs_now: Float[AnyArray, " Du"], y: Float[AnyArray, " Dy"]
) -> Float[AnyArray, " S"]:
    """Advance the state by one step, and overwrite the newest outputs by the measured ones (Eq. 44a)."""
    state, predicted = advance_mean(chain, state, inputs_now)
    return jnp.concatenate([jnp.where(jnp.isnan(y), predicted, y), state[len(predicted) :]])


StepInputs = tuple[Float[AnyArray, " Du"], KnownPart]  # the known regressors of a step, and what they contribute


@partial(jax.jit, static_argnames="horizon")
def predict_gp_narx(
    chain: Chain[Posterior],
    start: StartState,
    u_bar: Float[AnyArray, "T Du"],
    y: Float[AnyArray, "T Dy"],
    horizon: int,
) -> Moments:
    """Predict every row from the outputs up to `horizon` rows before it; the first `horizon` rows are a free run."""
    advance, observe = _make_advance(chain), observe_moments(chain)

    def step(state, row):
        state = advance(state, jax.tree.map(lambda values: values[row], inputs))
        state = _condition(state, observe(state), y[row])
        following = jax.tree.map(lambda values: jax.lax.dynamic_slice_in_dim(values, row + 1, horizon), inputs)
        output = observe(jax.lax.scan(lambda state, now: (advance(state, now), None), state, following)[0])
        return state, Moments(output.mean, jnp.diagonal(output.cov))

    y, inputs = jnp.asarray(y), (jnp.asarray(u_bar), compute_known_part(chain.hidden[0], u_bar))
    _, first = scan_moments(chain, start, compute_known_part(chain.hidden[0], u_bar[:horizon]))
    later = jax.lax.scan(step, JointState(start.mean, start.cov), jnp.arange(y.shape[0] - horizon))[1]
    return jax.tree.map(lambda one, other: jnp.concatenate([one, other]), first, later)


def _make_advance(chain: Chain[Posterior]) -> Callable[[JointState, StepInputs], JointState]:
    # A window of which all outputs are measured needs no psi statistics, which take a thousand times as long with a
    # thousand training rows.
    [layer] = chain.hidden
    outputs, advance_uncertain = layer.outputs, advance_moments(chain)
    order = locate_shifted(locate_windows(chain), 0, outputs)

    def advance_certain(state: JointState, now: StepInputs) -> JointState:
        mean, variance = predict_certain(layer, jnp.concatenate([state.mean, now[0]])[None])
        noisy = jnp.diag(jnp.broadcast_to(variance[0], (outputs,)) + layer.sigma2)
        cov = jnp.zeros_like(state.cov).at[:outputs, :outputs].set(noisy)
        return JointState(jnp.concatenate([state.mean, mean[0]])[order], cov)

    def advance(state: JointState, now: StepInputs) -> JointState:
        return jax.lax.cond(
            jnp.any(state.cov != 0.0), lambda: advance_uncertain(state, now[1]), lambda: advance_certain(state, now)
        )

    return advance


def _condition(state: JointState, predicted: OutputMoments, y: Float[AnyArray, " Dy"]) -> JointState:
    # Eq. 43. The newest outputs are the first entries of the state. Measured ones become exact; rounding must not leave
    # a covariance there.
    state = update(state, predicted, y)
    newest = jnp.concatenate([y, jnp.full(len(state.mean) - len(y), jnp.nan)])
    exact = ~jnp.isnan(newest)
    mean = jnp.where(exact, newest, state.mean)
    return JointState(mean, jnp.where(exact[:, None] | exact[None, :], 0.0, state.cov))
