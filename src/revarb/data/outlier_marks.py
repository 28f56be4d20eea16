"""Outliers by their neighbours in time, without a model: samples far from what a local regression predicts.

For scaling and start values of a fit with Student-t noise, whose weights then decide what is an outlier, and for a
choice, to see whether such a fit is worth a trial.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float64

from revarb.data.series import Series

NEIGHBOURS = 2  # on each side
FACTOR = 4.0  # an outlier is this many robust standard deviations of the residuals away from the prediction,
SHARE = 0.5  # and this many of the output itself: smaller ones do no harm to a start
MAX_PASSES = 100  # every pass takes the worst sample of every neighbourhood
REWEIGHTINGS = 10  # of the robust regression
TO_STD = 1.4826  # from the median absolute deviation of a Gaussian to its standard deviation


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
        (part > limit) & (part >= _find_largest(part)) & (_measure_excess(column) > 0.2 * limit)
        for part, column in zip(parts, filled, strict=True)
    ]


def _interpolate(column: np.ndarray) -> np.ndarray:
    time, measured = np.arange(len(column)), np.isfinite(column)
    if not measured.any():
        return np.zeros(len(column))
    return np.interp(time, time[measured], column[measured])


def _sum_neighbours(column: np.ndarray) -> Float64[np.ndarray, "T K"]:
    # y_{i-k} + y_{i+k} for each k, and a constant; the ends are repeated.
    padded, count = np.pad(column, NEIGHBOURS, mode="edge"), len(column)
    sums = [
        padded[NEIGHBOURS - k : NEIGHBOURS - k + count] + padded[NEIGHBOURS + k : NEIGHBOURS + k + count]
        for k in range(1, NEIGHBOURS + 1)
    ]
    return np.stack([*sums, np.ones(count)], axis=1)


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


def _find_largest(residuals: np.ndarray) -> np.ndarray:
    # Of every sample and its neighbours.
    padded, count = np.pad(residuals, NEIGHBOURS), len(residuals)
    return np.max([padded[k : k + count] for k in range(2 * NEIGHBOURS + 1)], axis=0)


def _measure_excess(column: np.ndarray) -> np.ndarray:
    # How far a sample is above or below all of its neighbours: not at all at the edge of a step.
    padded, count = np.pad(column, NEIGHBOURS, mode="edge"), len(column)
    others = [padded[k : k + count] for k in range(2 * NEIGHBOURS + 1) if k != NEIGHBOURS]
    return np.maximum(column - np.max(others, axis=0), np.min(others, axis=0) - column)
