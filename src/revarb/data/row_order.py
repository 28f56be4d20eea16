"""Whether rows are in the order of time: in records of a dynamic system, what follows depends on what came before.

After a shuffle no column depends on the rows before it, neither on itself nor on another one. Any such dependence shows
that the rows are in order: an input with steps, an output that decays, or white noise that acts one row later.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from jaxtyping import Bool, Float64

from revarb.data.series import Series

MIN_ROWS = 100  # fewer show nothing: in 100 rows, a correlation of 0.4 is seen
REACH = 20  # rows back
CHANCE = 0.05  # that a dependence is seen where there is none, on the row before, and once more on those before that


def look_shuffled(records: Sequence[Series]) -> bool:
    """Whether no column of the records depends on the rows before it. Times as row labels show their order."""
    first = records[0]
    has_times = first.time_name is not None or (first.index is not None and first.index.seconds() is not None)
    if has_times or sum(map(len, records)) < MIN_ROWS:
        return False
    u, y = (_rank_columns(np.concatenate(parts)) for parts in zip(*((each.u, each.y) for each in records), strict=True))
    # What an input does in the same row, which is not shuffled, hides what it does later: the rest shows it.
    columns = np.hstack([u, y, y - u @ np.linalg.lstsq(u, np.nan_to_num(y))[0]])
    if not columns.size:
        return False
    measured = np.isfinite(columns)
    ranks = np.nan_to_num(columns / np.nanstd(columns, axis=0))
    ends = np.cumsum([0, *map(len, records)])
    parts = [slice(begin, end) for begin, end in pairwise(ends)]
    scores = [_score_dependence(ranks, measured, parts, back) for back in range(1, REACH + 1)]
    return scores[0] < _limit(ranks, 1) and max(scores[1:]) < _limit(ranks, REACH - 1)


def _rank_columns(values: Float64[np.ndarray, "N C"]) -> Float64[np.ndarray, "N K"]:
    # Ranks, which outliers do not move, and their distances from the median, which show dependences such as a square;
    # all with zero mean. Constant ones are left out.
    ranks = [np.empty((len(values), 0))]
    for column in values.T:
        known = np.isfinite(column)
        _, place, counts = np.unique(column[known], return_inverse=True, return_counts=True)
        rank = (np.cumsum(counts) - 0.5 * (counts + 1))[place] / max(len(place), 1) - 0.5
        for each in (rank, np.abs(rank)):
            if len(each) and np.ptp(each) > 1e-9:
                full = np.full((len(column), 1), np.nan)
                full[known, 0] = each - each.mean()
                ranks.append(full)
    return np.hstack(ranks)


def _score_dependence(
    ranks: Float64[np.ndarray, "N K"], measured: Bool[np.ndarray, "N K"], parts: Sequence[slice], back: int
) -> float:
    # The largest correlation of two columns, so many rows apart, in units of its standard deviation.
    total, count = 0.0, 0.0
    for rows in parts:
        now, before = slice(rows.start + back, rows.stop), slice(rows.start, max(rows.stop - back, rows.start))
        total = total + ranks[now].T @ ranks[before]
        count = count + measured[now].T.astype(float) @ measured[before]
    return float(np.max(np.abs(total) / np.sqrt(np.maximum(count, 1.0))))


def _limit(ranks: Float64[np.ndarray, "N K"], shifts: int) -> float:
    # For the largest of all pairs of columns.
    return NormalDist().inv_cdf(1.0 - 0.5 * CHANCE / (shifts * ranks.shape[1] ** 2))
