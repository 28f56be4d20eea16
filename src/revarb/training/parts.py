"""Parts of long records: choosing among models needs fewer rows than fitting the one that is taken."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.errors import InputError

MAX_ROWS = 2000  # of all records together; with more, parts of them are used
PART_ROWS = 500


def cut_parts(records: Sequence[Series]) -> list[Series]:
    """The records themselves, or spread parts of them with about `MAX_ROWS` rows in all.

    All records are used where a column moves only outside of these parts.
    """
    if sum(len(record) for record in records) <= MAX_ROWS:
        return list(records)
    pieces = [piece for record in records for piece in _cut(record)]
    chosen, rows = [], 0
    for number in np.argsort(np.arange(len(pieces)) * GOLDEN % 1.0):  # spread over the records, in an order of its own
        if rows < MAX_ROWS:
            chosen.append(int(number))
            rows += len(pieces[number])
    parts = [pieces[number] for number in sorted(chosen)]
    try:
        Standardiser.from_records(parts)
    except InputError:
        return list(records)
    return parts


GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0  # multiples of it, modulo 1, are spread evenly


def _cut(record: Series) -> list[Series]:
    # Pieces of at least PART_ROWS rows, but for a shorter record; one without any measured output is of no use.
    ends = np.linspace(0, len(record), max(1, len(record) // PART_ROWS) + 1).round().astype(int)
    pieces = [record[begin:end] for begin, end in pairwise(ends)]
    return [piece for piece in pieces if piece.missing < piece.y.size]
