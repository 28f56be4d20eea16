"""Pieces of the training part that are kept apart: for choosing sizes, for stopping, and for the width of a band.

The training part is cut into `PIECES`. With few records every record is cut in time; with many, whole records are kept
apart in turn. A piece is judged by free simulation: the model runs from the start of the record, and its errors count
inside the piece.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.errors import InputError

PIECES = 4


TAIL = PIECES - 1


MIN_ERRORS = 3


MIN_STD = 1e-3  # of the output's own; a band of no width would make every miss infinitely surprising


def piece(lengths: Sequence[int], number: int) -> list[slice]:
    """Which samples of every record belong to a piece."""
    if len(lengths) >= PIECES:
        return [slice(0, length if index % PIECES == number else 0) for index, length in enumerate(lengths)]
    return [slice(length * number // PIECES, length * (number + 1) // PIECES) for length in lengths]


def rows_outside(prep: Preprocessor, lengths: Sequence[int], number: int) -> Bool[np.ndarray, " R"]:
    """Which training rows have nothing of a piece in them, neither as target nor among their regressors."""
    first, masks = prep.order.first_row, []
    for length, held in zip(lengths, piece(lengths, number), strict=True):
        samples = np.arange(first, length)
        touched = (samples >= held.start) & (samples < held.stop + first) & (held.stop > held.start)
        masks.append(~touched)
    apart = np.concatenate(masks)
    if not apart.any():
        raise InputError(
            f"records of {list(lengths)[:5]} samples leave no training rows beside a held-out piece with these lags; "
            "use fewer lags or longer records"
        )
    return apart


def held_out_errors(
    prep: Preprocessor, records: Sequence[Series], simulated: Sequence[Float64[np.ndarray, "_ Dy"]], number: int
) -> Float64[np.ndarray, "E Dy"]:
    """Errors of z-scored free runs of all records inside a piece.

    The first `skip` rows of a run are still settling and do not count, but half of a piece always does.
    """
    errors = []
    lengths = [len(record) for record in records]
    for record, run, held in zip(records, simulated, piece(lengths, number), strict=True):
        settled = min(prep.skip, (held.start + held.stop) // 2)
        errors.append((run - prep.scaling.outputs(record.y))[max(held.start, settled) : held.stop])
    counted = np.concatenate(errors)
    if len(counted) < MIN_ERRORS:
        raise InputError(
            f"records of {lengths[:5]} samples leave {len(counted)} held-out one(s) to judge the model by, and "
            f"{MIN_ERRORS} are needed; use a longer record"
        )
    return counted


def rms_error(errors: Float64[np.ndarray, "E Dy"]) -> float:
    """Root of the mean square of z-scored errors; infinite for a run that left the numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        size = float(np.sqrt(np.mean(errors**2)))
    return size if np.isfinite(size) else float("inf")


def residual_deviation(errors: Float64[np.ndarray, "E Dy"]) -> Float64[np.ndarray, " Dy"]:
    """Root mean square error per output: the standard deviation that a model without its own is given."""
    return np.maximum(np.sqrt(np.mean(errors**2, axis=0)), MIN_STD)
