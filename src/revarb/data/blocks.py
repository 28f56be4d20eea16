"""Blocks of consecutive rows that represent long records in a fit."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import InputError

LENGTH = 500  # samples of a block, at most; the first of them only fill the windows
PER_RECORD = 4  # blocks of a record of average length, at least: its beginning can differ from its end
LEAST_WINDOWS = 5  # a block is at least as long as this many windows


class Blocks(NamedTuple):
    """The records of a fit: those that were given, or blocks of them in the same order, which are shorter records."""

    records: tuple[Series, ...]
    last: tuple[int, ...]  # for each of the given records, the number of the block that ends where it ends


def cut_blocks(records: Sequence[Series], order: Order, limit: int | None) -> Blocks:
    """Represent records with more than `limit` samples in all by evenly spread blocks with about as many.

    The last block of a record ends where the record ends, so that a simulation can continue it. Every record has a
    block: many short records can have more samples than the limit. Other blocks have a measured output each. Where a
    column does not move in the blocks, there are twice as many, until all records are used.
    """
    total = sum(len(record) for record in records)
    while limit is not None and limit < total:
        # One length for all blocks, which depends on the order only where a model has very many lags.
        length = max(min(LENGTH, limit // (PER_RECORD * len(records))), LEAST_WINDOWS * order.first_row)
        cut = [_cut(record, length, round(limit * len(record) / total / length)) for record in records]
        blocks = tuple(block for pieces in cut for block in pieces)
        if _columns_move(blocks, order):
            return Blocks(blocks, tuple((np.cumsum([len(pieces) for pieces in cut]) - 1).tolist()))
        limit *= 2
    return Blocks(tuple(records), tuple(range(len(records))))


def _cut(record: Series, length: int, count: int) -> list[Series]:
    # Of the pieces of this length, counted from the end, the last one and others that have a measured output.
    if len(record) <= length:
        return [record]
    *earlier, last = range(len(record), length - 1, -length)[::-1]  # where the pieces end
    measured = [end for end in earlier if np.isfinite(record.y[end - length : end]).any()]
    return [record[end - length : end] for end in (*_spread(measured, count - 1), last)]


def _spread(values: Sequence[int], count: int) -> list[int]:
    # `count` of the values, evenly spread, the first one among them.
    if len(values) <= count:
        return list(values)
    return [values[number * len(values) // count] for number in range(count)]


def _columns_move(blocks: Sequence[Series], order: Order) -> bool:
    # In the rows that have a full window behind them: others are no targets.
    rows = [block[order.first_row :] for block in blocks]
    measured = [part for part in rows if part.missing < part.y.size]
    try:
        return bool(measured) and Standardiser.from_records(measured) is not None
    except InputError:  # a column is constant
        return False
