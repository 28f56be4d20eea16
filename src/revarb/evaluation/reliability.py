"""Whether the bands of simulated trajectories are honest: shares inside them, PIT values, and errors by horizon.

Records are pooled, as in `pooled_scores`; a NaN among the measured outputs is a value that was not measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy.typing import ArrayLike
from scipy.special import ndtr

from revarb.data.trajectory import Trajectory
from revarb.errors import InputError, check_integer
from revarb.evaluation.scoring import check_outputs

LEVELS = (*(percent / 100.0 for percent in range(5, 100, 5)), 0.99)


MIN_VALUES = 10
"""So many make a mean square worth drawing."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """`observed[k]` is the share of `count` measurements inside the interval that should hold a share `levels[k]`."""

    levels: Float64[np.ndarray, " K"]
    observed: Float64[np.ndarray, " K"]
    count: int


@dataclass(frozen=True, eq=False)
class ErrorByHorizon:
    """Errors and what the bands say of them, in bins of steps since the start; the first row of a record is step 1.

    steps      mean step of a bin
    error      root of the mean squared error, every output divided by its measured standard deviation
    predicted  root of the mean predicted variance, likewise; equal to `error` where the bands are honest
    counts     measurements in a bin
    """

    steps: Float64[np.ndarray, " B"]
    error: Float64[np.ndarray, " B"]
    predicted: Float64[np.ndarray, " B"]
    counts: Int64[np.ndarray, " B"]


@dataclass(frozen=True, eq=False)
class BandCheck:
    """All that is to be seen of one model's bands. `skip` first rows count in `horizon` only."""

    reliability: Reliability
    pit: Float64[np.ndarray, " V"]
    horizon: ErrorByHorizon
    skip: int


def check_bands(paths: Sequence[Trajectory], outputs: Sequence[ArrayLike], skip: int | None = None) -> BandCheck:
    """Three views of the same bands, for a picture that has them side by side."""
    skip = _pooled(paths, outputs, skip).skip
    return BandCheck(
        reliability_diagram(paths, outputs, skip),
        pit_values(paths, outputs, skip),
        error_by_horizon(paths, outputs),
        skip,
    )


def reliability_diagram(
    paths: Sequence[Trajectory],
    outputs: Sequence[ArrayLike],
    skip: int | None = None,
    levels: Sequence[float] = LEVELS,
) -> Reliability:
    """The share of measurements inside `Trajectory.interval`, level by level, the first `skip` rows left out."""
    rows = _pooled(paths, outputs, skip)
    count = int(rows.there.sum())
    observed = []
    for level in levels:
        ends = [path.interval(level) for path in paths]
        lower, upper = (np.concatenate([end[rows.skip :] for end in side]) for side in zip(*ends, strict=True))
        observed.append(np.count_nonzero((lower <= rows.y) & (rows.y <= upper)) / count)  # NaN is in no interval
    return Reliability(np.array(levels, dtype=np.float64), np.array(observed), count)


def pit_values(
    paths: Sequence[Trajectory], outputs: Sequence[ArrayLike], skip: int | None = None
) -> Float64[np.ndarray, " V"]:
    """The probability integral transform: where in its N(mean, std²) every measurement lies, from 0 to 1.

    Honest bands make these values uniform. The first `skip` rows are left out.
    """
    rows = _pooled(paths, outputs, skip)
    return ndtr(((rows.y - rows.mean) / rows.std)[rows.there])


def error_by_horizon(paths: Sequence[Trajectory], outputs: Sequence[ArrayLike], bins: int = 20) -> ErrorByHorizon:
    """Error and predicted standard deviation against the number of steps since the start, the warm-up included.

    The bins are log-spaced; neighbours that would hold less than ten measurements are put together.
    """
    bins = check_integer("bins", bins, least=1)
    rows = _pooled(paths, outputs, skip=0)
    spread = np.ma.masked_invalid(rows.y).std(axis=0).filled(0.0)
    scale = np.where(spread > 0.0, spread, 1.0)  # an output that stands still has no scale of its own
    scaled = (rows.steps, (rows.y - rows.mean) / scale, rows.std / scale)
    steps, error, std = (values[rows.there] for values in scaled)
    place = np.searchsorted(_inner_edges(steps, bins), steps, side="right")
    counts = np.bincount(place)
    step, square, variance = (np.bincount(place, values) / counts for values in (steps, error**2, std**2))
    return ErrorByHorizon(step, np.sqrt(square), np.sqrt(variance), counts)


class _Rows(NamedTuple):
    """The rows of all records after the first `skip`. `there` says what was measured, `steps` counts from the start."""

    y: Float64[np.ndarray, "R Dy"]
    mean: Float64[np.ndarray, "R Dy"]
    std: Float64[np.ndarray, "R Dy"]
    there: Bool[np.ndarray, "R Dy"]
    steps: Int64[np.ndarray, "R Dy"]
    skip: int


def _pooled(paths: Sequence[Trajectory], outputs: Sequence[ArrayLike], skip: int | None) -> _Rows:
    measured, skip = check_outputs(paths, outputs, skip)
    for path in paths:
        if path.std is None:
            raise InputError(f"a simulation with method={path.method!r} has no band to judge; use method='moments'")
    y = np.concatenate([values[skip:] for values in measured])
    if np.isnan(y).all():
        raise InputError(f"no output was measured after the first {skip} rows: all of y is NaN; leave out fewer rows")
    mean, std = (np.concatenate([getattr(path, of)[skip:] for path in paths]) for of in ("mean", "band_std"))
    steps = np.concatenate([np.arange(skip, len(path)) + 1 for path in paths])
    return _Rows(y, mean, std, ~np.isnan(y), np.broadcast_to(steps[:, None], y.shape), skip)


def _inner_edges(steps: Int64[np.ndarray, " V"], bins: int) -> list[float]:
    """Log-spaced steps at which a new bin begins, with at least ten of `steps` in every bin (or all in one)."""
    edges, begun = [], 0
    ordered = np.sort(steps)
    for edge in np.geomspace(1.0, ordered[-1] + 1.0, bins + 1)[1:-1]:
        before = int(np.searchsorted(ordered, edge))
        if before - begun >= MIN_VALUES and len(ordered) - before >= MIN_VALUES:
            edges.append(float(edge))
            begun = before
    return edges
