"""Held-out stretches of training records, assigned to the folds of a cross-validation."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series

FOLDS = 4  # fits that leave out a quarter of the stretches each
STRETCHES = 12  # of all records together, about
MIN_ROWS = 100  # with fewer rows, twelve stretches are too short to measure an error


class Stretch(NamedTuple):
    """The samples [begin, end) of a record, which one of the folds leaves out."""

    record: int
    begin: int
    end: int
    fold: int

    @property
    def rows(self) -> slice:
        """The samples as a slice of the record."""
        return slice(self.begin, self.end)


def cut_stretches(records: Sequence[Series], prep: Preprocessor) -> list[Stretch]:
    """Cut the records into about twelve stretches of equal length, assigned to the folds in turn; none if too short.

    The first rows of a record are never held out, because the transient of a cold run has not decayed there.
    """
    firsts = [min(prep.skip, len(record) // 2) for record in records]
    counts = [len(record) - first for record, first in zip(records, firsts, strict=True)]
    if sum(counts) < MIN_ROWS:
        return []
    length = sum(counts) / STRETCHES
    pieces = [
        (number, int(begin), int(end))
        for number, (record, first, count) in enumerate(zip(records, firsts, counts, strict=True))
        for begin, end in pairwise(np.linspace(first, len(record), max(1, round(count / length)) + 1).round())
    ]
    return [Stretch(*piece, position % FOLDS) for position, piece in enumerate(pieces)]


def mask_fold(records: Sequence[Series], stretches: Sequence[Stretch], fold: int) -> list[Series]:
    """Mask the outputs of one fold's stretches (NaN)."""
    return [
        _mask(record, [stretch for stretch in stretches if (stretch.record, stretch.fold) == (number, fold)])
        for number, record in enumerate(records)
    ]


def _mask(record: Series, stretches: Sequence[Stretch]) -> Series:
    y = record.y.copy()
    for stretch in stretches:
        y[stretch.rows] = np.nan
    return replace(record, y=y)
