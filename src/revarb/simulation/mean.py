"""Mean-only free run: every layer predicts at the mean of its regressors (docs/theory/derivation.md, Eq. 35)."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64, Int

from revarb.data.windows import Order, input_windows_after
from revarb.runtime.numerics import AnyArray, cut_rows, pad_rows
from revarb.simulation.chain import (
    Chain,
    StartState,
    locate_regressors,
    locate_shifted,
    locate_windows,
    make_cold_start,
    mark_reset_row,
    reset_where,
)


def run_mean(
    chain: Chain, start: StartState, u_bar: Float[AnyArray, "T Du"], reset_row: int
) -> Float[AnyArray, "T Dy"]:
    """Simulate the mean only: every layer predicts at the mean of its regressors (Eq. 35)."""
    return cut_rows(scan_mean(chain, start, pad_rows(u_bar), reset_row), len(u_bar))


@jax.jit
def scan_mean(
    chain: Chain, start: StartState, u_bar: Float[AnyArray, "T Du"], reset_row: int | Int[AnyArray, ""]
) -> Float[AnyArray, "T Dy"]:
    """`run_mean` without appended rows, for use in compiled functions."""

    def step(state, now):
        inputs_now, is_reset = now
        return advance_mean(chain, reset_where(state, start.mean, is_reset), inputs_now)

    return jax.lax.scan(step, start.mean, (u_bar, mark_reset_row(u_bar.shape[0], reset_row)))[1]


@jax.jit
def run_means(
    chain: Chain, start: Float[AnyArray, "K S"], u_bar: Float[AnyArray, "T K Du"]
) -> Float[AnyArray, "T K Dy"]:
    """Simulate the mean only over K inputs side by side, each from its own start."""
    advance = jax.vmap(advance_mean, in_axes=(None, 0, 0))
    return jax.lax.scan(lambda state, now: advance(chain, state, now), start, u_bar)[1]


def advance_mean(
    chain: Chain, state: Float[AnyArray, " S"], inputs_now: Float[AnyArray, " Du"]
) -> tuple[Float[AnyArray, " S"], Float[AnyArray, " Dy"]]:
    """Advance the mean-only run by one step; return the joint state after it, and y."""
    windows = locate_windows(chain)
    for h, (layer, inputs) in enumerate(zip(chain.hidden, locate_regressors(chain), strict=True)):
        x_hat = jnp.concatenate([state[inputs], inputs_now]) if h == 0 else state[inputs]
        mean = layer.mean(x_hat[None])[0]
        state = jnp.concatenate([state, mean])[locate_shifted(windows, h, len(mean))]
    newest = state[windows[-1]]
    return state, newest[: chain.latent_dims[-1]] if chain.output is None else chain.output.mean(newest[None])[0]


def run_mean_cold(chain: Chain, order: Order, z: Float64[np.ndarray, "T Du"]) -> Float[AnyArray, "T Dy"]:
    """Simulate the mean on z-scored inputs from a cold start, which is repeated where the window of inputs is full."""
    start = make_cold_start(chain.latent_dims, chain.lags, order.reach, z.shape[1])
    return run_mean(chain, start, input_windows_after(start.past_u, z, order), order.reach)
