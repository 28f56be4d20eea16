"""Filtering and prediction of NARX models: their states are the measured outputs (docs/theory/derivation.md, Eq. 44a).

A measured output overwrites the state that the model predicts for it; where an output is missing (NaN) the prediction
stays. Means only.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.mean import advance_mean, run_mean
from revarb.simulation.moments import JointState


@jax.jit
def filter_narx(
    chain: Chain, start: StartState, u_bar: Float[AnyArray, "T Du"], y: Float[AnyArray, "T Dy"]
) -> JointState:
    """Infer the state after the last row of a record; its outputs count as known exactly: the covariance is zero."""

    def step(state, now):
        return advance_measured(chain, state, *now), None

    state = jax.lax.scan(step, jnp.asarray(start.mean), (u_bar, y))[0]
    return JointState(state, jnp.zeros_like(start.cov))


@partial(jax.jit, static_argnames="horizon")
def predict_narx(
    chain: Chain,
    start: StartState,
    u_bar: Float[AnyArray, "T Du"],
    y: Float[AnyArray, "T Dy"],
    reset_row: int | Int[AnyArray, ""],
    horizon: int,
) -> Float[AnyArray, "T Dy"]:
    """Predict every row from the outputs up to `horizon` rows before it; the first `horizon` rows are a free run."""

    def filter_step(state, now):
        return (state := advance_measured(chain, state, *now)), state

    def predict_step(k, states):
        following = jax.lax.dynamic_slice_in_dim(inputs, k + 1, rows)
        return jax.vmap(lambda state, inputs_now: advance_mean(chain, state, inputs_now)[0])(states, following)

    inputs, rows = jnp.asarray(u_bar), y.shape[0] - horizon
    first = run_mean(chain, start, u_bar[:horizon], reset_row)
    filtered = jax.lax.scan(filter_step, jnp.asarray(start.mean), (u_bar[:rows], y[:rows]))[1]
    # All rows advance together; the newest outputs are the first entries of a state.
    later = jax.lax.fori_loop(0, horizon, predict_step, filtered)[:, : y.shape[1]]
    return jnp.concatenate([first, later])


def advance_measured(
    chain: Chain, state: Float[AnyArray, " S"], inputs_now: Float[AnyArray, " Du"], y: Float[AnyArray, " Dy"]
) -> Float[AnyArray, " S"]:
    """Advance the state by one step, and overwrite the newest outputs by the measured ones (Eq. 44a)."""
    state, predicted = advance_mean(chain, state, inputs_now)
    return jnp.concatenate([jnp.where(jnp.isnan(y), predicted, y), state[len(predicted) :]])
