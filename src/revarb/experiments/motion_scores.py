"""Errors of simulated motions, averaged in several ways."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from revarb.motion import cmu35


class MotionScores(NamedTuple):
    """RMSE of z-scored values, averaged in three ways, and over the walks and the runs separately.

    motions   mean of the RMSE of each motion
    pooled    RMSE over all rows and channels
    channels  mean of the RMSE of each channel
    walks     mean of the RMSE of each walk
    runs      mean of the RMSE of each run
    """

    motions: float
    pooled: float
    channels: float
    walks: float
    runs: float


MOTION_COLUMNS = (
    *(f"{score}_{count}" for count in (57, 53) for score in MotionScores._fields),
    "coverage95",
    "fit_seconds",
    "simulate_seconds",
)
"""Columns that are summarised over seeds. 57: all channels, as in the paper; 53: those that are not rounding noise."""


def score_motions(
    errors: Sequence[Float64[np.ndarray, "_ D"]], columns: Bool[np.ndarray, " D"], numbers: Sequence[int]
) -> MotionScores:
    """Score z-scored errors, one array per motion, in some of the channels; `numbers` are those of the motions."""
    chosen = [error[:, columns] for error in errors]
    per_motion = np.array([root_mean_square(error) for error in chosen])
    pooled = np.concatenate(chosen)
    runs = np.array([number in cmu35.RUNS for number in numbers])
    per_channel = [root_mean_square(channel) for channel in pooled.T]
    return MotionScores(
        motions=float(per_motion.mean()),
        pooled=root_mean_square(pooled),
        channels=float(np.mean(per_channel)),
        walks=float(per_motion[~runs].mean()),
        runs=float(per_motion[runs].mean()),
    )


def root_mean_square(values: np.ndarray) -> float:
    """Root mean square of all values."""
    return float(np.sqrt(np.mean(values**2)))
