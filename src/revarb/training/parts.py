"""Parts of long records: choosing among models needs fewer rows than fitting the one that is taken."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from revarb.data.series import Series

MAX_ROWS = 2000  # of all records together; with more, parts of them are used
PART_ROWS = 500


def cut_parts(records: Sequence[Series]) -> list[Series]:
    """The records themselves, or evenly spread parts of them with at most `MAX_ROWS` rows in all."""
    if sum(len(record) for record in records) <= MAX_ROWS:
        return list(records)
    pieces = [piece for record in records for piece in _cut(record)]
    count = max(1, MAX_ROWS // max(len(piece) for piece in pieces))
    chosen = np.unique(np.linspace(0, len(pieces) - 1, count).round().astype(int))
    return [pieces[number] for number in chosen]


def _cut(record: Series) -> list[Series]:
    # Pieces of at least PART_ROWS rows, but for a shorter record; one without any measured output is of no use.
    ends = np.linspace(0, len(record), max(1, len(record) // PART_ROWS) + 1).round().astype(int)
    pieces = [
        Series(record.u[begin:end], record.y[begin:end], record.dt, record.input_names, record.output_names)
        for begin, end in pairwise(ends)
    ]
    return [piece for piece in pieces if piece.missing < piece.y.size]
