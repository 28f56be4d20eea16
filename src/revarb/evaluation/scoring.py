"""How good a simulated trajectory is: RMSE, NRMSE, NLPD and coverage, with the warm-up left out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from revarb.data.series import as_matrix
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError, check_integer


@dataclass(frozen=True)
class Scores:
    """Scores over all values that were measured after the first `skip` rows, of all outputs.

    rmse        root of the mean squared error, raw units
    nrmse       the same with every output divided by the standard deviation of its scored values
    nlpd        mean negative log predictive density of one measured value, raw units (nan without a std)
    coverage50, coverage90, coverage95   share of measurements inside the central interval (nan without a std)
    """

    rmse: float
    nrmse: float
    nlpd: float
    coverage50: float
    coverage90: float
    coverage95: float
    skip: int


def scores(path: Trajectory, y: ArrayLike, skip: int | None = None) -> Scores:
    """Score a trajectory against the measured output `y` (raw units); where `y` is NaN nothing is scored.

    The first `skip` rows are left out: by default `path.skip`, the paper's protocol (lags + input lags).
    """
    return pooled_scores([path], [y], skip)


def pooled_scores(paths: Sequence[Trajectory], outputs: Sequence[ArrayLike], skip: int | None = None) -> Scores:
    """Score the trajectories of several records together: every row after the first `skip` of its record counts."""
    checked, skip = check_outputs(paths, outputs, skip)
    y = np.concatenate([values[skip:] for values in checked])
    measured = ~np.isnan(y)
    if not measured.any():
        raise InputError(f"y has no measured value after the first {skip} rows; there is nothing to score")
    # An output that stands still in the scored rows has no scale of its own to be judged by.
    spread = _spread(np.where(measured.any(0), y, 0.0))
    with np.errstate(over="ignore"):  # giant numbers that are far apart, or a giant error in units of a tiny spread
        error = y - np.concatenate([path.mean[skip:] for path in paths])
        relative = np.divide(error, spread, out=np.full_like(error, np.nan), where=spread > 0.0)
    return Scores(_rms(error[measured]), _rms(relative[measured]), *_band_scores(paths, y, measured, skip), skip)


def check_outputs(
    paths: Sequence[Trajectory], outputs: Sequence[ArrayLike], skip: int | None
) -> tuple[list[np.ndarray], int]:
    """The measured output of every record as a matrix like its path, and how many first rows are left out."""
    skip = max((path.skip for path in paths if isinstance(path, Trajectory)), default=0) if skip is None else skip
    skip = check_integer("skip", skip, least=0)
    return [_outputs(path, y, skip) for path, y in zip(paths, outputs, strict=True)], skip


def _outputs(path: Trajectory, y: ArrayLike, skip: int) -> np.ndarray:
    if not isinstance(path, Trajectory):
        raise InputError(f"pass what simulate returned and the measured y, received a {type(path).__name__}")
    outputs = as_matrix("y", y, gaps=True)
    if outputs.shape != path.mean.shape:
        raise InputError(
            f"y has shape {outputs.shape} but the simulated trajectory has {path.mean.shape}; "
            "pass the outputs measured at the same samples"
        )
    if skip >= len(outputs):
        raise InputError(f"skip must leave rows to score: received skip={skip} for {len(outputs)} rows")
    return outputs


def _spread(y: np.ndarray) -> np.ndarray:
    # In units of the largest value, so that no square over- or underflows: outputs come in all units. Likewise below.
    largest = np.nanmax(np.abs(y), axis=0)
    unit = np.where(largest > 0.0, largest, 1.0)
    return unit * np.nanstd(y / unit, axis=0)


def _rms(values: np.ndarray) -> float:
    largest = float(np.abs(values).max())
    return largest * float(np.sqrt(np.mean((values / largest) ** 2))) if 0.0 < largest < np.inf else largest


def _band_scores(
    paths: Sequence[Trajectory], y: np.ndarray, measured: np.ndarray, skip: int
) -> tuple[float, float, float, float]:
    spreads = [path.std[skip:] for path in paths if path.std is not None]
    if len(spreads) < len(paths):
        return np.nan, np.nan, np.nan, np.nan
    mean, std = np.concatenate([path.mean[skip:] for path in paths])[measured], np.concatenate(spreads)[measured]
    with np.errstate(over="ignore"):
        nlpd = np.mean(0.5 * np.log(2.0 * np.pi) + np.log(std) + 0.5 * ((y[measured] - mean) / std) ** 2)
    half, nine_tenths, most = (_share_inside(paths, y, measured, skip, level) for level in (0.50, 0.90, 0.95))
    return float(nlpd), half, nine_tenths, most


def _share_inside(paths: Sequence[Trajectory], y: np.ndarray, measured: np.ndarray, skip: int, level: float) -> float:
    lower, upper = (np.concatenate(ends)[measured] for ends in zip(*_intervals(paths, skip, level), strict=True))
    return float(np.mean((lower <= y[measured]) & (y[measured] <= upper)))


def _intervals(paths: Sequence[Trajectory], skip: int, level: float) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(lower[skip:], upper[skip:]) for lower, upper in (path.interval(level) for path in paths)]
