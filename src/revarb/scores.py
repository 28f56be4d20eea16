"""How good a simulated trajectory is: RMSE, NRMSE, NLPD and coverage, with the warm-up left out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from revarb.errors import InputError, check_whole
from revarb.series import as_matrix
from revarb.trajectory import Trajectory


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
    if not isinstance(path, Trajectory):
        raise InputError(f"scores takes what simulate returned and the measured y, received a {type(path).__name__}")
    measured = as_matrix("y", y)
    if measured.shape != path.mean.shape:
        raise InputError(
            f"y has shape {measured.shape} but the simulated trajectory has {path.mean.shape}; "
            "pass the outputs measured at the same samples"
        )
    skip = check_whole("skip", path.skip if skip is None else skip, least=0)
    if skip >= len(measured):
        raise InputError(f"skip must leave rows to score: received skip={skip} for {len(measured)} rows")
    error = measured[skip:] - path.mean[skip:]
    # An output that stands still in the scored rows has no scale of its own to be judged by.
    spread = measured[skip:].std(0)
    relative = np.divide(error, spread, out=np.full_like(error, np.nan), where=spread > 0.0)
    return Scores(_rms(error), _rms(relative), *_band_scores(path, measured, error, skip), skip)


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _band_scores(
    path: Trajectory, measured: np.ndarray, error: np.ndarray, skip: int
) -> tuple[float, float, float, float]:
    if path.std is None:
        return np.nan, np.nan, np.nan, np.nan
    variance = path.std[skip:] ** 2
    nlpd = float(np.mean(0.5 * np.log(2.0 * np.pi * variance) + 0.5 * error**2 / variance))
    half, nine_tenths, most = (_coverage(path, measured, level, skip) for level in (0.50, 0.90, 0.95))
    return nlpd, half, nine_tenths, most


def _coverage(path: Trajectory, measured: np.ndarray, level: float, skip: int) -> float:
    lower, upper = path.interval(level)
    return float(np.mean((lower <= measured)[skip:] & (measured <= upper)[skip:]))
