"""The free-run term of the objective: squared errors of mean-only runs over the training records.

docs/theory/derivation.md, Eq. 49. The runs follow the posterior means at the current parameters, so the gradient goes
through the collapsed posterior of every layer.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import input_windows
from revarb.gp.posterior import PosteriorMean
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain
from revarb.simulation.mean import run_means
from revarb.variational.states import FreeStates


class FreeRuns(NamedTuple):
    """K runs over training records, z-scored; short ones are padded with rows that are not counted."""

    u_bar: Float[AnyArray, "T K Du"]
    y: Float[AnyArray, "T K Dy"]
    counted: Bool[AnyArray, "T K Dy"]  # measured, and after the transient of a cold run
    windows: Int[AnyArray, "K L"] | None  # the states before each run, newest first; None: cold starts


def cut_cold_runs(prep: Preprocessor, records: Sequence[Series]) -> FreeRuns:
    """One cold run per record, from its first row with a full window of inputs; counted after the skip."""
    reach, skip = prep.order.reach, prep.skip
    runs = [
        (input_windows(prep.scaling.inputs(record.u), prep.order), y := prep.scaling.outputs(record.y)[reach:],
         np.isfinite(y) & (np.arange(len(y)) >= skip - reach)[:, None])
        for record in records
    ]  # fmt: skip
    return _stack(runs, None)


def cut_runs_from_states(prep: Preprocessor, records: Sequence[Series], steps: int) -> FreeRuns:
    """Runs of `steps` rows, one after the other, each from the latent means before it."""
    lags, runs, windows, first_state = prep.order.lags, [], [], 0
    for block in prep.blocks(records):
        for begin in range(0, len(block.u_bar), steps):
            y = block.y[lags + begin : lags + begin + steps]
            runs.append((block.u_bar[begin : begin + steps], y, np.isfinite(y)))
            windows.append(first_state + begin + np.arange(lags)[::-1])
        first_state += len(block.y)
    return _stack(runs, np.stack(windows))


def _stack(runs: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], windows: np.ndarray | None) -> FreeRuns:
    longest = max(len(u_bar) for u_bar, _, _ in runs)

    def pad(parts: Sequence[np.ndarray]) -> np.ndarray:
        return np.stack([np.pad(part, ((0, longest - len(part)), (0, 0))) for part in parts], axis=1)

    u_bar, y, counted = (pad(parts) for parts in zip(*runs, strict=True))
    return FreeRuns(u_bar, np.nan_to_num(y), counted, windows)


def sum_squared_errors(
    means: Sequence[PosteriorMean], states: FreeStates, runs: FreeRuns, lags: int
) -> Float[AnyArray, ""]:
    """Σ (ŷ − y)² over the counted rows of all runs, which advance together in one scan."""
    chain = Chain(tuple(means[:-1]), means[-1], lags)
    count = runs.y.shape[1]
    if runs.windows is None:
        start = jnp.zeros((count, lags * sum(chain.latent_dims)))
    else:
        start = jnp.concatenate([mu[runs.windows].reshape(count, -1) for mu in states.mu], axis=1)
    simulated = run_means(chain, start, runs.u_bar)
    return jnp.sum(jnp.where(runs.counted, simulated - runs.y, 0.0) ** 2)
