"""Filtering and prediction of NARX models: their states are the measured outputs (docs/theory/derivation.md, Eq. 44a).

A measured output overwrites the state that the model predicts for it; where an output is missing (NaN) the prediction
stays. Means only.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from revarb.runtime.numerics import AnyArray
from revarb.runtime.shapes import pad_rows
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.mean import advance_mean, scan_mean
from revarb.simulation.moments import JointState


def filter_narx(
    chain: Chain, start: StartState, u_bar: Float[AnyArray, "T Du"], y: Float[AnyArray, "T Dy"]
) -> JointState:
    """Infer the state after the last row of a record; its outputs count as known exactly: the covariance is zero."""
    state = _filter_rows(chain, start.mean, pad_rows(u_bar), pad_rows(y), len(y))
    return JointState(state, np.zeros_like(start.cov))


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
    first = scan_mean(chain, start, u_bar[:horizon], reset_row)
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
