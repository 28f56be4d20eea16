"""Sampling intervals: models count in samples, so the times of a record must be in even steps."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

TOLERANCE = 1e-3  # relative difference of two sampling intervals that are the same
JITTER = 0.05  # share of the interval by which a single step may differ from it


class Steps(NamedTuple):
    """The steps between times: their mean, the usual one, the largest share by which one differs, the first too far.

    `uneven` is the row after the first step that is not positive or differs by more than the jitter; None without one.
    """

    interval: float
    usual: float
    deviation: float
    uneven: int | None


def measure_steps(seconds: Float64[np.ndarray, " N"], usual: float | None = None) -> Steps:
    """Measure the steps between at least two times against the usual one, by default their median."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what overflows is uneven
        steps = np.diff(seconds)
        total = float(seconds[-1] - seconds[0])
        usual = float(np.median(steps)) if usual is None else usual
        deviations = np.abs(steps - usual) / usual
        wrong = ~((steps > 0.0) & (deviations <= JITTER)) | ~np.isfinite(total)
    row = int(np.argmax(wrong)) + 1 if wrong.any() else None
    return Steps(total / len(steps), usual, float(deviations.max()), row)


class Gaps(NamedTuple):
    """The rows after a gap, which is a step forward that is longer than the usual one; and the usual one."""

    rows: list[int]
    usual: float


def find_gaps(seconds: Float64[np.ndarray, " N"]) -> Gaps:
    """Find the gaps between at least two times."""
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by `measure_steps`
        steps = np.diff(seconds)
        usual = float(np.sort(steps)[(len(steps) - 1) // 2])  # a step that there is, also where there are only two
        rows = np.flatnonzero(steps > (1.0 + JITTER) * usual) + 1
    return Gaps(rows.tolist() if usual > 0.0 else [], usual)


def is_same_interval(one: float, other: float, error: float = 0.0) -> bool:
    """Whether two sampling intervals, known up to a relative error, are the same."""
    return abs(one - other) <= (TOLERANCE + error) * other
