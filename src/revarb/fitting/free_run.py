"""The free-run term of the objective: squared errors of mean-only runs over the training records.

docs/theory/derivation.md, Eq. 49. The runs follow the posterior means at the current parameters, so the gradient goes
through the collapsed posterior of every layer.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64, Int, Shaped

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import input_windows, input_windows_after
from revarb.gp.posterior import PosteriorMean
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain
from revarb.simulation.mean import run_mean, run_means
from revarb.simulation.starts import make_standard_start
from revarb.variational.states import FreeStates


class FreeRuns(NamedTuple):
    """K runs over training records, z-scored; short ones are padded with rows that are not counted."""

    u_bar: Float[AnyArray, "T K Du"]
    y: Float[AnyArray, "T K Dy"]
    weights: Float[AnyArray, "T K Dy"]  # 0 where an output is missing, and in the transient of a cold run
    rows: Int[AnyArray, "T K"]  # the training row of each row of a run; -1 before the first one
    windows: Int[AnyArray, "K L"] | None  # the states before each run, newest first; None: cold starts


def run_from_rest(chain: Chain, prep: Preprocessor, z: Float64[np.ndarray, "T Du"]) -> Float[AnyArray, "T Dy"]:
    """Simulate the mean on z-scored inputs from states at zero, and again from zero where the window of inputs is full.

    So a model is judged by inputs that it was given, as in the authors' code.
    """
    start, reach = make_standard_start(prep, chain), prep.order.reach
    u_bar = input_windows_after(start.past_u, z, prep.order)
    return jnp.concatenate([run_mean(chain, start, part) for part in (u_bar[:reach], u_bar[reach:]) if len(part)])


def cut_cold_runs(prep: Preprocessor, records: Sequence[Series]) -> FreeRuns:
    """One cold run per record, from its first row with a full window of inputs; counted after the skip."""
    reach, first, skip, runs, begin = prep.order.reach, prep.order.first_row, prep.skip, [], 0
    for record in records:
        y, samples = prep.scaling.outputs(record.y)[reach:], np.arange(reach, len(record))
        rows = np.where(samples < first, -1, begin + samples - first)
        counted = np.isfinite(y) & (samples >= skip)[:, None]
        runs.append((input_windows(prep.scaling.inputs(record.u), prep.order), y, counted, rows))
        begin += len(record) - first
    return _stack(runs, None)


def cut_runs_from_states(prep: Preprocessor, records: Sequence[Series], steps: int) -> FreeRuns:
    """Runs of `steps` rows, one after the other, each from the latent means before it."""
    lags, runs, windows, first_state, first_row = prep.order.lags, [], [], 0, 0
    for block in prep.scale_records(records):
        for begin in range(0, len(block.u_bar), steps):
            y = block.y[lags + begin : lags + begin + steps]
            rows = first_row + begin + np.arange(len(y))
            runs.append((block.u_bar[begin : begin + steps], y, np.isfinite(y), rows))
            windows.append(first_state + begin + np.arange(lags)[::-1])
        first_state, first_row = first_state + len(block.y), first_row + len(block.u_bar)
    return _stack(runs, np.stack(windows))


def _stack(runs: Sequence[tuple[np.ndarray, ...]], windows: np.ndarray | None) -> FreeRuns:
    u_bar, y, counted, rows = zip(*runs, strict=True)
    return FreeRuns(_pad(u_bar), np.nan_to_num(_pad(y)), _pad(counted).astype(np.float64), _pad(rows, -1), windows)


def _pad(parts: Sequence[np.ndarray], value: int = 0) -> Shaped[np.ndarray, "T K ..."]:
    padded = np.full((max(map(len, parts)), len(parts), *parts[0].shape[1:]), value, dtype=parts[0].dtype)
    for number, part in enumerate(parts):
        padded[: len(part), number] = part
    return padded


def weigh_runs(runs: FreeRuns, weights: Float[AnyArray, "R Dy"]) -> FreeRuns:
    """The runs with the weights of the training rows, so that no outlier is simulated; none counts more than once."""
    inside = np.asarray(runs.rows)[:, :, None] >= 0
    return runs._replace(weights=runs.weights * np.where(inside, np.minimum(weights, 1.0)[runs.rows], 1.0))


def sum_squared_errors(
    means: Sequence[PosteriorMean], states: FreeStates, runs: FreeRuns, lags: int
) -> Float[AnyArray, ""]:
    """Σ weight · (ŷ − y)² over the counted rows of all runs, which advance together in one scan."""
    chain = Chain(tuple(means[:-1]), means[-1], lags)
    count = runs.y.shape[1]
    if runs.windows is None:
        start = jnp.zeros((count, lags * sum(chain.latent_dims)))
    else:
        start = jnp.concatenate([mu[runs.windows].reshape(count, -1) for mu in states.mu], axis=1)
    simulated = run_means(chain, start, runs.u_bar)
    return jnp.sum(runs.weights * jnp.where(runs.weights > 0.0, simulated - runs.y, 0.0) ** 2)
