"""Quarters of the training records that a single fit holds out: to choose sizes, to stop a training, to find a band.

Few records are each cut in time; of many, whole records are held out in turn. The error on a quarter is that of a free
simulation from the start of the record, counted inside the quarter. It is cheaper than the held-out error
(held_out.py), which takes a fit per fold, and is not called that.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.errors import InputError

QUARTERS = 4
TAIL = QUARTERS - 1  # number of the last one
MIN_ERRORS = 3  # fewer held-out samples give no standard deviation
MIN_STD = 1e-3  # in standard deviations of the output: with a band of zero width the NLPD would be infinite


def locate_quarter(lengths: Sequence[int], number: int) -> list[slice]:
    """Return the samples of every record that belong to a quarter."""
    if len(lengths) >= QUARTERS:
        return [slice(0, length if index % QUARTERS == number else 0) for index, length in enumerate(lengths)]
    return [slice(length * number // QUARTERS, length * (number + 1) // QUARTERS) for length in lengths]


def select_rows_outside(prep: Preprocessor, lengths: Sequence[int], number: int) -> Bool[np.ndarray, " R"]:
    """Mark the training rows without any sample of a quarter, neither as target nor among the regressors."""
    first, masks = prep.order.first_row, []
    for length, quarter in zip(lengths, locate_quarter(lengths, number), strict=True):
        samples = np.arange(first, length)
        overlapping = (samples >= quarter.start) & (samples < quarter.stop + first) & (quarter.stop > quarter.start)
        masks.append(~overlapping)
    outside = np.concatenate(masks)
    if not outside.any():
        raise InputError(
            f"records of {list(lengths)[:5]} samples leave no training rows beside a held-out quarter with these lags; "
            "use fewer lags or longer records"
        )
    return outside


def compute_quarter_errors(
    prep: Preprocessor, records: Sequence[Series], simulated: Sequence[Float64[np.ndarray, "_ Dy"]], number: int
) -> Float64[np.ndarray, "E Dy"]:
    """Compute the errors of z-scored free runs of all records inside a quarter.

    The first `skip` rows of a run, its transient, are left out, but at most half of a quarter.
    """
    lengths = [len(record) for record in records]
    joined = np.concatenate([
        (run - prep.scaling.outputs(record.y))[counted]
        for record, run, counted in zip(records, simulated, _locate_counted(prep, lengths, number), strict=True)
    ])  # fmt: skip
    if len(joined) < MIN_ERRORS:
        raise InputError(
            f"records of {lengths[:5]} samples leave {len(joined)} held-out one(s) to judge the model by, and "
            f"{MIN_ERRORS} are needed; use a longer record"
        )
    return joined


def mark_measured(prep: Preprocessor, records: Sequence[Series], quarters: Sequence[int]) -> Bool[np.ndarray, "E Dy"]:
    """Mark the errors of `compute_quarter_errors`, quarters stacked, whose output was measured; refuse none at all."""
    nothing = [np.zeros_like(record.y) for record in records]
    errors = np.concatenate([compute_quarter_errors(prep, records, nothing, number) for number in quarters])
    if not np.isfinite(errors).any():
        raise InputError(
            "no output after the transients is measured, by which the model is chosen; use fewer lags, or cut the "
            "records to where there are measurements"
        )
    return np.isfinite(errors)


def find_measured_quarter(prep: Preprocessor, records: Sequence[Series]) -> int:
    """The last quarter, or where no output of it is measured the one with the most measured outputs.

    Counted are the outputs that `compute_quarter_errors` compares.
    """
    lengths = [len(record) for record in records]
    counts = [
        sum(
            int(np.isfinite(record.y[counted]).sum())
            for record, counted in zip(records, _locate_counted(prep, lengths, number), strict=True)
        )
        for number in range(QUARTERS)
    ]
    return TAIL if counts[TAIL] or not any(counts) else int(np.argmax(counts))


def _locate_counted(prep: Preprocessor, lengths: Sequence[int], number: int) -> list[slice]:
    # The samples of a quarter after the transient.
    return [
        slice(max(quarter.start, min(prep.skip, (quarter.start + quarter.stop) // 2)), quarter.stop)
        for quarter in locate_quarter(lengths, number)
    ]


def rms_error(errors: Float64[np.ndarray, "..."]) -> float:
    """Root mean square of z-scored errors; infinite for a run that diverged."""
    with np.errstate(over="ignore", invalid="ignore"):
        rms = float(np.sqrt(np.mean(errors**2)))
    return rms if np.isfinite(rms) else float("inf")


def estimate_residual_std(errors: Float64[np.ndarray, "E Dy"]) -> Float64[np.ndarray, " Dy"]:
    """Estimate the standard deviation of each output by the root mean square of its held-out errors.

    Missing ones (NaN) are left out; an output without any gets the standard deviation of its training values, 1.
    """
    measured = np.isfinite(errors)
    squares = np.sum(np.where(measured, errors, 0.0) ** 2, axis=0) / np.maximum(measured.sum(0), 1)
    return np.where(measured.any(0), np.maximum(np.sqrt(squares), MIN_STD), 1.0)
