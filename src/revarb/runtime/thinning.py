"""Lines of long records with fewer points: what is drawn looks the same, and a figure stays small."""

import numpy as np
from jaxtyping import Float64

MAX_ROWS = 3000  # longer lines are thinned
BINS = 1500  # about the width of a figure in pixels


def thin_line(
    time: Float64[np.ndarray, " T"], values: Float64[np.ndarray, " T"]
) -> tuple[Float64[np.ndarray, " K"], Float64[np.ndarray, " K"]]:
    """The smallest and the largest value of every bin of a long line, in the order of their times."""
    if len(values) <= MAX_ROWS:
        return time, values
    binned = _cut_bins(values)
    low, high = np.argmin(_fill(binned, np.inf), axis=1), np.argmax(_fill(binned, -np.inf), axis=1)
    first = np.arange(len(binned)) * binned.shape[1]
    rows = np.minimum(np.sort(np.stack([first + low, first + high], axis=1), axis=1).ravel(), len(values) - 1)
    return time[rows], values[rows]


def thin_band(
    time: Float64[np.ndarray, " T"], lower: Float64[np.ndarray, " T"], upper: Float64[np.ndarray, " T"]
) -> tuple[Float64[np.ndarray, " K"], Float64[np.ndarray, " K"], Float64[np.ndarray, " K"]]:
    """The smallest lower and the largest upper end of every bin of a long band."""
    if len(lower) <= MAX_ROWS:
        return time, lower, upper
    below, above = _cut_bins(lower), _cut_bins(upper)
    low, high = _fill(below, np.inf).min(axis=1), _fill(above, -np.inf).max(axis=1)
    gaps = np.isnan(below).all(axis=1)
    starts = time[np.arange(len(below)) * below.shape[1]]
    return starts, np.where(gaps, np.nan, low), np.where(gaps, np.nan, high)


def _cut_bins(values: np.ndarray) -> np.ndarray:
    # One bin per row; the last one is filled with NaN, and bins beyond the end are left out.
    size = -(-len(values) // BINS)
    rows = -(-len(values) // size)
    return np.concatenate([values, np.full(rows * size - len(values), np.nan)]).reshape(rows, size)


def _fill(binned: np.ndarray, value: float) -> np.ndarray:
    return np.where(np.isnan(binned), value, binned)
