"""How good a simulated trajectory is: RMSE, NRMSE, NLPD and coverage, with the warm-up left out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from revarb.errors import InputError, check_whole
from revarb.series import as_matrix
from revarb.trajectory import Trajectory, half_width


@dataclass(frozen=True)
class Scores:
    """Scores over all rows after the first `skip` and over all outputs.

    rmse        root of the mean squared error, raw units
    nrmse       the same with every output divided by its standard deviation in the scored rows
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
    """Score a trajectory against the measured output `y` (raw units).

    The first `skip` rows are left out: by default `path.skip`, the paper's protocol (lags + input lags).
    """
    return pooled_scores([path], [y], skip)


def pooled_scores(paths: Sequence[Trajectory], outputs: Sequence[ArrayLike], skip: int | None = None) -> Scores:
    """Score the trajectories of several records together: every row after the first `skip` of its record counts."""
    skip = max((path.skip for path in paths if isinstance(path, Trajectory)), default=0) if skip is None else skip
    skip = check_whole("skip", skip, least=0)
    measured = [_measured(path, y, skip) for path, y in zip(paths, outputs, strict=True)]
    y = np.concatenate([values[skip:] for values in measured])
    # An output that stands still in the scored rows has no scale of its own to be judged by.
    spread = _spread(y)
    with np.errstate(over="ignore"):  # giant numbers that are far apart, or a giant error in units of a tiny spread
        error = y - np.concatenate([path.mean[skip:] for path in paths])
        relative = np.divide(error, spread, out=np.full_like(error, np.nan), where=spread > 0.0)
    spreads = [path.std[skip:] for path in paths if path.std is not None]
    std = np.concatenate(spreads) if len(spreads) == len(paths) else None
    return Scores(_rms(error), _rms(relative), *_band_scores(error, std), skip)


def _measured(path: Trajectory, y: ArrayLike, skip: int) -> np.ndarray:
    if not isinstance(path, Trajectory):
        raise InputError(f"scores takes what simulate returned and the measured y, received a {type(path).__name__}")
    measured = as_matrix("y", y)
    if measured.shape != path.mean.shape:
        raise InputError(
            f"y has shape {measured.shape} but the simulated trajectory has {path.mean.shape}; "
            "pass the outputs measured at the same samples"
        )
    if skip >= len(measured):
        raise InputError(f"skip must leave rows to score: received skip={skip} for {len(measured)} rows")
    return measured


def _spread(y: np.ndarray) -> np.ndarray:
    # In units of the largest value, so that no square over- or underflows: outputs come in all units. Likewise below.
    largest = np.abs(y).max(0)
    unit = np.where(largest > 0.0, largest, 1.0)
    return unit * (y / unit).std(0)


def _rms(values: np.ndarray) -> float:
    largest = float(np.abs(values).max())
    return largest * float(np.sqrt(np.mean((values / largest) ** 2))) if 0.0 < largest < np.inf else largest


def _band_scores(error: np.ndarray, std: np.ndarray | None) -> tuple[float, float, float, float]:
    if std is None:
        return np.nan, np.nan, np.nan, np.nan
    with np.errstate(over="ignore"):
        nlpd = float(np.mean(0.5 * np.log(2.0 * np.pi) + np.log(std) + 0.5 * (error / std) ** 2))
    half, nine_tenths, most = (float(np.mean(np.abs(error) <= half_width(level) * std)) for level in (0.50, 0.90, 0.95))
    return nlpd, half, nine_tenths, most
