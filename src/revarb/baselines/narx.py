"""What the baselines do about missing outputs in their training records."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, as_records
from revarb.errors import InputError
from revarb.training.narx_rows import NarxRows, build_narx_rows, mark_complete

MIN_ROWS = 2  # as of the shortest record without gaps


class CompleteRows(NamedTuple):
    """Training rows without a missing value, and which of all rows they are."""

    rows: NarxRows
    complete: Bool[np.ndarray, " R"]


def build_complete_rows(prep: Preprocessor, records: Sequence[Series], model: str) -> CompleteRows:
    """Build the training rows that no gap touches; refuse records with too few of them."""
    rows = build_narx_rows(prep, records)
    complete = mark_complete(rows)
    if (number := int(complete.sum())) < MIN_ROWS:
        raise InputError(
            f"{model} regresses on measured past outputs, and {number} of {len(complete)} training rows have all of "
            f"them measured, fewer than {MIN_ROWS}; use fewer lags, fill the gaps, or use RGP, which needs no such rows"
        )
    return CompleteRows(NarxRows(rows.x_hat[complete], rows.y[complete]), complete)


def require_complete(train: Series | Sequence[Series], model: str) -> tuple[Series, ...]:
    """Return the training records of a model that needs every output value; refuse missing ones."""
    records = as_records(train)
    missing = sum(record.missing for record in records)
    if missing:
        total = sum(record.y.size for record in records)
        raise InputError(
            f"{model} needs every output value, and {missing} of {total} are missing; fill them, or use RGP, which "
            "accepts missing outputs"
        )
    return records
