"""Held-out stretches of training records, dealt out to folds."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from revarb.data.preprocessor import Frame
from revarb.data.series import Series

FOLDS = 4  # fits that miss a quarter of the stretches each


STRETCHES = 12


LEAST_ROWS = 100  # below, twelve stretches are too short to tell anything


class Stretch(NamedTuple):
    """The samples [begin, end) of a record, which one of the folds does not see."""

    record: int
    begin: int
    end: int
    fold: int

    def rows(self) -> slice:
        """Where it is in its record."""
        return slice(self.begin, self.end)


def stretches_of(records: Sequence[Series], frame: Frame) -> list[Stretch]:
    """About a dozen stretches of the same length, dealt out to the folds; none where there are too few rows.

    The first rows of a record stay: a run is still settling there.
    """
    firsts = [min(frame.skip, len(record) // 2) for record in records]
    counts = [len(record) - first for record, first in zip(records, firsts, strict=True)]
    if sum(counts) < LEAST_ROWS:
        return []
    length = sum(counts) / STRETCHES
    pieces = [
        (number, int(begin), int(end))
        for number, (record, first, count) in enumerate(zip(records, firsts, counts, strict=True))
        for begin, end in pairwise(np.linspace(first, len(record), max(1, round(count / length)) + 1).round())
    ]
    return [Stretch(*piece, position % FOLDS) for position, piece in enumerate(pieces)]


def _without(record: Series, stretches: Sequence[Stretch]) -> Series:
    y = record.y.copy()
    for stretch in stretches:
        y[stretch.rows()] = np.nan
    return replace(record, y=y)
