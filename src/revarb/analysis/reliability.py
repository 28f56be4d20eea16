"""Reliability of bands: coverage by level, PIT values, and errors by horizon.

Records are pooled, as in `pooled_scores`. NaN in the measured outputs is a missing value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import ArrayLike

from revarb.analysis.scores import pool_records, share_inside
from revarb.data.scaling import share_below
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError, check_integer

LEVELS = (*(percent / 100.0 for percent in range(5, 100, 5)), 0.99)
MIN_VALUES = 10  # measurements per bin of the horizon


@dataclass(frozen=True, eq=False, repr=False)
class Reliability:
    """Reliability diagram: the share of measurements inside the central interval, for every level.

    Attributes
    ----------
    levels : array [K]
        Nominal levels of the intervals.
    observed : array [K]
        Share of the measurements inside; equal to `levels` where the bands are reliable.
    count : int
        Number of measurements.
    """

    levels: Float64[np.ndarray, " K"]
    observed: Float64[np.ndarray, " K"]
    count: int

    def __repr__(self) -> str:
        return f"Reliability({self.count} measurements, {len(self.levels)} levels)"


@dataclass(frozen=True, eq=False, repr=False)
class ErrorByHorizon:
    """Error and predicted standard deviation in bins of steps since the start; the first row of a record is step 1.

    Attributes
    ----------
    steps : array [B]
        Mean step of a bin.
    error : array [B]
        Root of the mean squared error, every output divided by its measured standard deviation.
    predicted : array [B]
        Root of the mean predicted variance, likewise; equal to `error` where the bands are reliable.
    counts : array of int [B]
        Number of measurements in a bin.
    """

    steps: Float64[np.ndarray, " B"]
    error: Float64[np.ndarray, " B"]
    predicted: Float64[np.ndarray, " B"]
    counts: Int64[np.ndarray, " B"]

    def __repr__(self) -> str:
        return f"ErrorByHorizon({len(self.steps)} bins of {int(self.counts.sum())} measurements)"


@dataclass(frozen=True, eq=False, repr=False)
class BandCheck:
    """Reliability diagram, PIT values and error by horizon of one model's bands.

    Attributes
    ----------
    reliability : Reliability
        Coverage by level.
    pit : array [V]
        PIT values of the V measurements.
    horizon : ErrorByHorizon
        Error and predicted standard deviation by the number of steps since the start.
    skip : int
        Number of first rows of every record that count in `horizon` only.
    """

    reliability: Reliability
    pit: Float64[np.ndarray, " V"]
    horizon: ErrorByHorizon
    skip: int

    def __repr__(self) -> str:
        return f"BandCheck({self.reliability!r}, skip={self.skip})"


def check_bands(paths: Sequence[Trajectory], outputs: Sequence[ArrayLike], skip: int | None = None) -> BandCheck:
    """Reliability diagram, PIT values and error by horizon of the same bands.

    Parameters
    ----------
    paths : list of Trajectory
        Simulations with a band, one per record.
    outputs : list of array-like [T, outputs] or data frames
        Outputs measured at the same rows, raw units; NaN is a missing value.
    skip : int, optional
        Number of first rows of every record to leave out; default: the largest `skip` of the paths.

    Returns
    -------
    BandCheck

    Examples
    --------
    >>> import numpy as np, revarb
    >>> from revarb.analysis.reliability import check_bands
    >>> y = np.random.default_rng(0).standard_normal(200)
    >>> path = revarb.Trajectory(np.zeros((200, 1)), np.ones((200, 1)), "moments", 0, ("y",))
    >>> check = check_bands([path], [y])
    >>> check.reliability.count, check.pit.shape, check.horizon.counts.sum().item()
    (200, (200,), 200)
    """
    diagram, pit = reliability_diagram(paths, outputs, skip), pit_values(paths, outputs, skip)
    return BandCheck(diagram, pit, error_by_horizon(paths, outputs), _pool_bands(paths, outputs, skip)[0].skip)


def reliability_diagram(
    paths: Sequence[Trajectory],
    outputs: Sequence[ArrayLike],
    skip: int | None = None,
    levels: Sequence[float] = LEVELS,
) -> Reliability:
    """The share of measurements inside `Trajectory.interval` for every level, without the first `skip` rows.

    Parameters
    ----------
    paths : list of Trajectory
        Simulations with a band, one per record.
    outputs : list of array-like [T, outputs] or data frames
        Outputs measured at the same rows, raw units; NaN is a missing value.
    skip : int, optional
        Number of first rows of every record to leave out; default: the largest `skip` of the paths.
    levels : list of float
        Levels between 0 and 1; default: 5 % to 95 % in steps of 5 %, and 99 %.

    Returns
    -------
    Reliability

    Examples
    --------
    >>> import numpy as np, revarb
    >>> from revarb.analysis.reliability import reliability_diagram
    >>> y = np.random.default_rng(0).standard_normal(200)
    >>> path = revarb.Trajectory(np.zeros((200, 1)), np.ones((200, 1)), "moments", 0, ("y",))
    >>> diagram = reliability_diagram([path], [y], levels=(0.5, 0.95))
    >>> bool(abs(diagram.observed - diagram.levels).max() < 0.1)
    True
    """
    path, y = _pool_bands(paths, outputs, skip)
    observed = [share_inside(path, y, level) for level in levels]
    return Reliability(np.array(levels, dtype=np.float64), np.array(observed), int(np.count_nonzero(~np.isnan(y))))


def pit_values(
    paths: Sequence[Trajectory], outputs: Sequence[ArrayLike], skip: int | None = None
) -> Float64[np.ndarray, " V"]:
    """Probability integral transform of every measurement under its distribution: uniform where bands are reliable.

    The first `skip` rows are left out.

    Parameters
    ----------
    paths : list of Trajectory
        Simulations with a band, one per record.
    outputs : list of array-like [T, outputs] or data frames
        Outputs measured at the same rows, raw units; NaN is a missing value.
    skip : int, optional
        Number of first rows of every record to leave out; default: the largest `skip` of the paths.

    Returns
    -------
    array [V]
        One value between 0 and 1 per measurement.

    Examples
    --------
    A measurement at the mean has 0.5, one at the upper end of the 95 % band 0.975:

    >>> import numpy as np, revarb
    >>> from revarb.analysis.reliability import pit_values
    >>> path = revarb.Trajectory(np.zeros((2, 1)), np.ones((2, 1)), "moments", 0, ("y",))
    >>> pit_values([path], [[0.0, 1.96]]).round(3).tolist()
    [0.5, 0.975]
    """
    path, y = _pool_bands(paths, outputs, skip)
    return share_below((y - path.mean) / path.std, path.degrees_of_freedom)[~np.isnan(y)]


def error_by_horizon(paths: Sequence[Trajectory], outputs: Sequence[ArrayLike], bins: int = 20) -> ErrorByHorizon:
    """Error and predicted standard deviation against the number of steps since the start, first rows included.

    The bins are log-spaced; neighbouring bins with fewer than ten measurements are merged.

    Parameters
    ----------
    paths : list of Trajectory
        Simulations with a band, one per record.
    outputs : list of array-like [T, outputs] or data frames
        Outputs measured at the same rows, raw units; NaN is a missing value.
    bins : int
        Largest number of bins.

    Returns
    -------
    ErrorByHorizon

    Examples
    --------
    >>> import numpy as np, revarb
    >>> from revarb.analysis.reliability import error_by_horizon
    >>> y = np.random.default_rng(0).standard_normal(200)
    >>> path = revarb.Trajectory(np.zeros((200, 1)), np.ones((200, 1)), "moments", 0, ("y",))
    >>> horizon = error_by_horizon([path], [y], bins=4)
    >>> horizon.error.shape == horizon.predicted.shape, horizon.counts.sum().item()
    (True, 200)
    """
    bins = check_integer("bins", bins, least=1)
    path, y = _pool_bands(paths, outputs, skip=0)
    since_start = np.concatenate([np.arange(1, len(each) + 1) for each in paths])
    y_std = np.ma.masked_invalid(y).std(axis=0).filled(0.0)
    scale = np.where(y_std > 0.0, y_std, 1.0)  # a constant output has no scale of its own
    scaled = (np.broadcast_to(since_start[:, None], y.shape), (y - path.mean) / scale, path.std / scale)
    steps, error, std = (values[~np.isnan(y)] for values in scaled)
    place = np.searchsorted(_inner_edges(steps, bins), steps, side="right")
    counts = np.bincount(place)
    step, square, variance = (np.bincount(place, values) / counts for values in (steps, error**2, std**2))
    return ErrorByHorizon(step, np.sqrt(square), np.sqrt(variance), counts)


def _pool_bands(
    paths: Sequence[Trajectory], outputs: Sequence[ArrayLike], skip: int | None
) -> tuple[Any, Float64[np.ndarray, "T Dy"]]:
    # Of simulations that have a band, and of which a measured value is judged.
    path, y = pool_records(paths, outputs, skip)
    if path.std is None:
        raise InputError(f"a simulation with method={path.method!r} has no band; use method='moments'")
    if np.isnan(y).all():
        raise InputError(
            f"no output was measured after the first {path.skip} rows: all of y is NaN; leave out fewer rows"
        )
    return path, y


def _inner_edges(steps: Int64[np.ndarray, " V"], bins: int) -> list[float]:
    """Log-spaced steps at which a new bin begins, with at least `MIN_VALUES` in every bin (or all in one)."""
    edges, binned = [], 0
    ordered = np.sort(steps)
    for edge in np.geomspace(1.0, ordered[-1] + 1.0, bins + 1)[1:-1]:
        before = int(np.searchsorted(ordered, edge))
        if before - binned >= MIN_VALUES and len(ordered) - before >= MIN_VALUES:
            edges.append(float(edge))
            binned = before
    return edges
