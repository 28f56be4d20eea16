"""Fixed-lag smoothing: latent states of a measured record, each inferred from the outputs up to L − 1 samples later.

The joint state of the filter (filtering.py) has the last L states of every layer, conditioned on all outputs so far. A
state is read off where it is about to leave its window.
"""

import jax
import numpy as np
from jaxtyping import Float, Float64

from revarb.gp.posterior import KnownPart, Posterior
from revarb.runtime.numerics import AnyArray
from revarb.runtime.shapes import cut_rows, pad_rows
from revarb.simulation.chain import Chain, StartState, locate_windows
from revarb.simulation.filtering import make_update
from revarb.simulation.moments import JointState, advance_moments, compute_known_rows, observe_moments


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
    advance, observe, condition = advance_moments(chain), observe_moments(chain), make_update(chain)

    def step(state, now):
        known_now, y_now = now
        state = advance(state, known_now)
        state = condition(state, observe(state), y_now)
        return state, state.mean

    return jax.lax.scan(step, JointState(start.mean, start.cov), (known, y))[1]
