"""Sampling intervals of tables. Models count in samples, so the times of a record must be evenly spaced."""

from collections.abc import Sequence

import numpy as np

from revarb.data.tables.table import Table
from revarb.errors import InputError

TOLERANCE = 1e-3  # relative variation of a sampling interval that is accepted


def sampling_interval(table: Table, column: str) -> float:
    """The interval of a column of times; uneven times are refused with the place."""
    seconds = table.seconds(column)
    if len(seconds) < 2:
        raise InputError(f"{table.path} has a single row, so its column {column!r} shows no sampling interval")
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused as uneven
        steps = np.diff(seconds)
        usual, total = float(np.median(steps)), float(seconds[-1] - seconds[0])
        uneven = ~((steps > 0.0) & (np.abs(steps - usual) <= TOLERANCE * usual)) | ~np.isfinite(total)
    if uneven.any():
        row = int(np.argmax(uneven)) + 1
        before, now = table.cell(column, row - 1), table.cell(column, row)
        raise InputError(
            f"{table.place(column, row)}: time goes from {before} to {now}, but it must increase in even steps (their "
            f"median is {usual:g}); resample the record, or cut it in two there"
        )
    return total / len(steps)


def common_interval(tables: Sequence[Table], column: str) -> float:
    """The interval at which all tables are sampled; those that differ are refused."""
    intervals = [sampling_interval(table, column) for table in tables]
    for table, interval in zip(tables, intervals, strict=True):
        if not is_same_interval(interval, intervals[0]):
            raise InputError(
                f"{table.path} is sampled every {interval:g}, but {tables[0].path} every {intervals[0]:g}; resample one"
            )
    return intervals[0]


def check_interval(table: Table, column: str, dt: float) -> None:
    """Refuse a table whose column of times has another interval than `dt`, the one of a model."""
    interval = sampling_interval(table, column)
    if not is_same_interval(interval, dt):
        raise InputError(
            f"{table.path} is sampled every {interval:g}, but the model was fitted with dt={dt:g}; resample the file, "
            "or fit with a column of times or dt"
        )


def is_same_interval(one: float, other: float) -> bool:
    """Whether two sampling intervals differ no more than the steps of one record may."""
    return abs(one - other) <= TOLERANCE * other
