"""Mean-only free run: every layer predicts at the mean of its regressors (docs/theory/derivation.md, Eq. 35)."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64

from revarb.runtime.numerics import AnyArray, cut_rows, pad_rows
from revarb.simulation.chain import Chain, StartState, locate_regressors, locate_shifted, locate_windows

ROUNDING = 1e-12  # of the largest variance: less is none


def run_mean(chain: Chain, start: StartState, u_bar: Float[AnyArray, "T Du"]) -> Float[AnyArray, "T Dy"]:
    """Simulate the mean only: every layer predicts at the mean of its regressors (Eq. 35)."""
    return cut_rows(scan_mean(chain, start, pad_rows(u_bar)), len(u_bar))


@jax.jit
def scan_mean(chain: Chain, start: StartState, u_bar: Float[AnyArray, "T Du"]) -> Float[AnyArray, "T Dy"]:
    """`run_mean` without appended rows, for use in compiled functions."""
    return jax.lax.scan(lambda state, now: advance_mean(chain, state, now), start.mean, u_bar)[1]


def run_mean_spread(
    chain: Chain, start: StartState, u_bar: Float[AnyArray, "T Du"]
) -> tuple[Float64[np.ndarray, "T Dy"], Float64[np.ndarray, "T Dy"]]:
    """`run_mean`, and the variance of y that is due to the covariance of the start, without that of the model.

    By runs that begin a standard deviation to either side of the mean, for every column of a root of the covariance:
    exact where the model is linear (Eq. 36c).
    """
    starts = spread_start(start)
    if len(starts) == 1:
        mean = np.asarray(run_mean(chain, start, u_bar), dtype=np.float64)
        return mean, np.zeros_like(mean)
    runs = np.moveaxis(np.asarray(cut_rows(_scan_means(chain, starts, pad_rows(u_bar)), len(u_bar))), 1, 0)
    with np.errstate(over="ignore", invalid="ignore"):  # of runs that diverge
        return runs[0], measure_spread(runs)


def spread_start(start: StartState) -> Float64[np.ndarray, "K S"]:
    """The mean of a start, then the states a standard deviation above it, then as many below."""
    mean, root = np.asarray(start.mean, dtype=np.float64), factorise_covariance(np.asarray(start.cov, dtype=np.float64))
    return np.concatenate([mean[None], mean + root, mean - root])


def measure_spread(runs: Float64[np.ndarray, "K *D"]) -> Float64[np.ndarray, "*D"]:
    """The variance between the runs of `spread_start`."""
    higher, lower = np.split(runs[1:], 2)
    return np.sum((0.5 * (higher - lower)) ** 2, axis=0)


def factorise_covariance(cov: Float64[np.ndarray, "S S"]) -> Float64[np.ndarray, "K S"]:
    """Rows whose squares add up to a covariance, its Cholesky factor: none for what is known exactly."""
    left, rows, least = cov.copy(), [], ROUNDING * np.diagonal(cov).max(initial=0.0)
    for number in range(len(cov)):
        if left[number, number] > least:
            rows.append(left[number] / np.sqrt(left[number, number]))
            left -= np.outer(rows[-1], rows[-1])
    return np.array(rows).reshape(-1, len(cov))


@jax.jit
def _scan_means(
    chain: Chain, starts: Float[AnyArray, "K S"], u_bar: Float[AnyArray, "T Du"]
) -> Float[AnyArray, "T K Dy"]:
    # From several starts with the same inputs.
    advance = jax.vmap(advance_mean, in_axes=(None, 0, None))
    return jax.lax.scan(lambda states, now: advance(chain, states, now), starts, u_bar)[1]


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
