"""Whether a record drifts: its last third is unlike the first two, as seen by a linear model of these.

A sensor that loses its zero, a part that wears, a process that warms up: one model of the whole record averages over
them, and what comes after the record is unlike most of it.
"""

import numpy as np
from jaxtyping import Bool, Float64

from revarb.data.series import Series

LAGS = 4  # of the linear model, and the input of the same row
BLOCKS, LAST = 12, 4  # of the record, and of its last third
MIN_ROWS = 10 * BLOCKS
ENOUGH = 10  # rows per coefficient: with fewer its own errors are smaller than any others
LEAST = 1e-3  # error in the last third, in standard deviations of the output: less is rounding
LARGE = 6.0  # difference of the blocks' means, in standard errors: of twenty steady records the largest has 2.4


def find_drift(record: Series) -> Bool[np.ndarray, " Dy"]:
    """Mark the outputs whose errors one step ahead, in mean or in size, are others in the last third than before."""
    none = np.zeros(record.y.shape[1], dtype=bool)
    if len(record) < MIN_ROWS:
        return none
    y, rows = record.y, len(record) - LAGS
    past = [values[LAGS - back : len(values) - back] for values in (y, record.u) for back in range(1, LAGS + 1)]
    regressors = np.hstack([*past, record.u[LAGS:], np.ones((rows, 1))])
    complete = np.asarray(np.isfinite(np.hstack([regressors, y[LAGS:]])).all(axis=1))
    blocks = np.array_split(np.arange(rows), BLOCKS)
    first = complete & (np.arange(rows) < blocks[-LAST][0])
    if first.sum() < ENOUGH * regressors.shape[1] or not all(complete[block].any() for block in blocks):
        return none
    coefficients = np.linalg.lstsq(regressors[first], y[LAGS:][first])[0]
    errors = [(y[LAGS:] - regressors @ coefficients)[block][complete[block]] for block in blocks]
    means = np.array([each.mean(axis=0) for each in errors])
    sizes = np.array([np.sqrt((each**2).mean(axis=0)) for each in errors])
    with np.errstate(divide="ignore", invalid="ignore"):  # without any errors there is nothing to compare
        differs = (np.abs(_compare(means)) > LARGE) | (_compare(np.log(sizes)) > LARGE)
    return differs & (sizes[-LAST:].mean(axis=0) > LEAST * np.nanstd(y, axis=0))


def _compare(values: Float64[np.ndarray, "B Dy"]) -> Float64[np.ndarray, " Dy"]:
    # The last blocks' mean minus that of the first ones, in its standard errors.
    first, last = values[:-LAST], values[-LAST:]
    error = first.std(axis=0, ddof=1) * np.sqrt(1.0 / len(first) + 1.0 / len(last))
    return (last.mean(axis=0) - first.mean(axis=0)) / error
