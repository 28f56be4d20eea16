"""Mean-only free run: every layer predicts at the mean of its regressors (docs/theory/derivation.md, Eq. 35)."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64, Int

from revarb.data.windows import Lags, input_windows
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, Start, _fresh_rows, _renewed, _shifted, _windows, _wiring, cold_start


@jax.jit
def run_mean(
    chain: Chain, start: Start, u_bar: Float[AnyArray, "T Du"], fresh: int | Int[AnyArray, ""]
) -> Float[AnyArray, "T Dy"]:
    """Mean-only free run: every layer predicts at the mean of its regressors."""

    def step(state, now):
        inputs_now, is_fresh = now
        return mean_step(chain, _renewed(state, start.mean, is_fresh), inputs_now)

    return jax.lax.scan(step, start.mean, (u_bar, _fresh_rows(u_bar, fresh)))[1]


def mean_step(
    chain: Chain, state: Float[AnyArray, " S"], inputs_now: Float[AnyArray, " Du"]
) -> tuple[Float[AnyArray, " S"], Float[AnyArray, " Dy"]]:
    """One step of the mean-only run: the joint state after it, and y."""
    windows = _windows(chain)
    for h, (layer, inputs) in enumerate(zip(chain.hidden, _wiring(chain), strict=True)):
        x_hat = jnp.concatenate([state[inputs], inputs_now]) if h == 0 else state[inputs]
        mean = layer.mean(x_hat[None])[0]
        state = jnp.concatenate([state, mean])[_shifted(windows, h, len(mean))]
    newest = state[windows[-1]]
    return state, newest[: chain.latent_dims[-1]] if chain.output is None else chain.output.mean(newest[None])[0]


def cold_mean(chain: Chain, lags: Lags, z: Float64[np.ndarray, "T Du"]) -> Float[AnyArray, "T Dy"]:
    """The mean-only free run on z-scored inputs, cold where the window of inputs is full; z-scored."""
    start = cold_start(chain.latent_dims, chain.lags, lags.reach, z.shape[1])
    return run_mean(chain, start, input_windows(np.concatenate([start.past_u, z]), lags), lags.reach)
