"""Records as a fit takes them: long ones represented by shorter ones, and outliers marked by their neighbours in time.

Short records are consecutive rows, evenly spread over the long one. Outliers are samples far from what a local
regression predicts, without a model: for scaling and start values of a fit with Student-t noise, whose weights then
decide what is an outlier, and for a choice, to see whether such a fit is worth a trial.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64
from scipy.ndimage import correlate1d, maximum_filter, maximum_filter1d, minimum_filter

from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import InputError

LENGTH = 500  # samples of a short record, at most; the first of them only fill the windows
PER_RECORD = 4  # short records of a record of average length, at least: its beginning can differ from its end
LEAST_WINDOWS = 5  # a short record is at least as long as this many windows
NEIGHBOURS = 2  # on each side
FACTOR = 4.0  # an outlier is this many robust standard deviations of the residuals away from the prediction,
SHARE = 0.5  # and this many of the output itself: smaller ones do no harm to a start
MAX_PASSES = 100  # every pass takes the worst sample of every neighbourhood
REWEIGHTINGS = 10  # of the robust regression
TO_STD = 1.4826  # from the median absolute deviation of a Gaussian to its standard deviation

OTHERS = np.arange(-NEIGHBOURS, NEIGHBOURS + 1) != 0  # of a neighbourhood, without its middle


class ShortRecords(NamedTuple):
    """The records of a fit: those that were given, or short ones cut from them, in the same order."""

    records: tuple[Series, ...]
    last: tuple[int, ...]  # for each of the given records, the number of the short one that ends where it ends


def shorten_records(records: Sequence[Series], order: Order, limit: int | None) -> ShortRecords:
    """Represent records with more than `limit` samples in all by evenly spread short ones with about as many.

    The last one of a record ends where the record ends, so that a simulation can continue it. Every record is
    represented: many short records can have more samples than the limit. All but the last have a measured output.
    Where a column does not move in them, there are twice as many, until all records are used.
    """
    total = sum(len(record) for record in records)
    while limit is not None and limit < total:
        # One length for all, which depends on the order only where a model has very many lags.
        length = max(min(LENGTH, limit // (PER_RECORD * len(records))), LEAST_WINDOWS * order.first_row)
        cut = [_cut(record, length, round(limit * len(record) / total / length)) for record in records]
        short = tuple(part for parts in cut for part in parts)
        if _columns_move(short, order):
            return ShortRecords(short, tuple((np.cumsum([len(parts) for parts in cut]) - 1).tolist()))
        limit *= 2
    return ShortRecords(tuple(records), tuple(range(len(records))))


def _cut(record: Series, length: int, count: int) -> list[Series]:
    # Of the parts of this length, counted from the end: the last one, and others that have a measured output.
    if len(record) <= length:
        return [record]
    *earlier, last = range(len(record), length - 1, -length)[::-1]  # where the parts end
    ends = [end for end in earlier if np.isfinite(record.y[end - length : end]).any()]
    count = min(count - 1, len(ends))
    spread = [ends[number * len(ends) // count] for number in range(count)]
    return [record[end - length : end] for end in (*spread, last)]


def _columns_move(records: Sequence[Series], order: Order) -> bool:
    # In the rows that have a full window behind them: others are no targets.
    rows = [record[order.first_row :] for record in records]
    measured = [part for part in rows if part.missing < part.y.size]
    try:
        return bool(measured) and Standardiser.from_records(measured) is not None
    except InputError:  # a column is constant
        return False


def mask_outliers(records: Sequence[Series]) -> list[Series]:
    """The records with their outliers missing (NaN)."""
    marks = mark_outliers([record.y for record in records])
    return [replace(record, y=np.where(mark, np.nan, record.y)) for record, mark in zip(records, marks, strict=True)]


def mark_outliers(outputs: Sequence[Float64[np.ndarray, "_ Dy"]]) -> list[Bool[np.ndarray, "_ Dy"]]:
    """Mark the outliers of every record; missing values (NaN) are none. All records share the regression."""
    by_output = [_mark_column([y[:, column] for y in outputs]) for column in range(outputs[0].shape[1])]
    return [np.stack(marks, axis=1) for marks in zip(*by_output, strict=True)]


def _mark_column(columns: Sequence[np.ndarray]) -> list[np.ndarray]:
    marks = [np.zeros(len(column), dtype=bool) for column in columns]
    for _ in range(MAX_PASSES):
        kept = [np.where(mark, np.nan, column) for column, mark in zip(columns, marks, strict=True)]
        if not any(np.isfinite(column).any() for column in kept):
            break
        found = _find_worst(kept)
        if not any(new.any() for new in found):
            break
        marks = [mark | new for mark, new in zip(marks, found, strict=True)]
    return marks


def _find_worst(columns: Sequence[np.ndarray]) -> list[np.ndarray]:
    # The worst sample of every neighbourhood, where it is bad enough: an outlier has large residuals beside it, too.
    filled = [_interpolate(column) for column in columns]
    regressors, values = np.concatenate([_sum_neighbours(column) for column in filled]), np.concatenate(columns)
    measured, residuals = np.isfinite(values), np.zeros(len(values))
    residuals[measured] = np.abs(_regress(regressors[measured], values[measured]))
    noise, spread = TO_STD * float(np.median(residuals[measured])), _measure_spread(values[measured])
    parts = np.split(residuals, np.cumsum([len(column) for column in columns])[:-1])
    limit = max(FACTOR * noise, SHARE * spread)
    return [
        (part > limit) & (part == maximum_filter1d(part, len(OTHERS))) & (_measure_excess(column) > 0.2 * limit)
        for part, column in zip(parts, filled, strict=True)
    ]


def _interpolate(column: np.ndarray) -> np.ndarray:
    time, measured = np.arange(len(column)), np.isfinite(column)
    if not measured.any():
        return np.zeros(len(column))
    return np.interp(time, time[measured], column[measured])


def _sum_neighbours(column: np.ndarray) -> Float64[np.ndarray, "T K"]:
    # y_{i-k} + y_{i+k} for each k, and a constant; the ends are repeated.
    pairs = [np.array([1.0, *np.zeros(2 * k - 1), 1.0]) for k in range(1, NEIGHBOURS + 1)]
    sums = [correlate1d(column, pair, mode="nearest") for pair in pairs]
    return np.stack([*sums, np.ones(len(column))], axis=1)


def _regress(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    # Residuals of a regression with least absolute deviations, by weighted least squares: robust to many outliers.
    residuals = y - np.median(y)
    for _ in range(REWEIGHTINGS):
        smallest = 1e-3 * np.mean(np.abs(residuals)) + np.finfo(np.float64).tiny
        root = 1.0 / np.sqrt(np.maximum(np.abs(residuals), smallest))
        residuals = y - x @ np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]
    return residuals


def _measure_spread(values: np.ndarray) -> float:
    # Robust standard deviation; that of all values where more than half of them are equal.
    spread = TO_STD * float(np.median(np.abs(values - np.median(values))))
    return spread if spread > 0.0 else float(np.std(values))


def _measure_excess(column: np.ndarray) -> np.ndarray:
    # How far a sample is above or below all of its neighbours: not at all at the edge of a step.
    highest = maximum_filter(column, footprint=OTHERS, mode="nearest")
    lowest = minimum_filter(column, footprint=OTHERS, mode="nearest")
    return np.maximum(column - highest, lowest - column)
