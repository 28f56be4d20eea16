"""Long records in a fit: represented by shorter records of consecutive rows, evenly spread over them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import InputError

LENGTH = 500  # samples of a short record, at most; the first of them only fill the windows
PER_RECORD = 4  # short records of a record of average length, at least: its beginning can differ from its end
LEAST_WINDOWS = 5  # a short record is at least as long as this many windows


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
