"""Sampling intervals of tables. Models count in samples, so the times of a record must be evenly spaced."""

from collections.abc import Sequence
from typing import NamedTuple

from revarb.data.even_steps import TOLERANCE, is_same_interval, measure_steps
from revarb.data.tables.table import Table
from revarb.errors import InputError, warn_user


class Sampling(NamedTuple):
    """The interval of a column of times, and the relative error of it that jitter can cause."""

    interval: float
    error: float


def measure_sampling(table: Table, column: str) -> Sampling:
    """The sampling of a column of times; uneven times are refused with the place, jitter is accepted with a warning."""
    seconds = table.seconds(column)
    if len(seconds) < 2:
        raise InputError(f"{table.path} has a single row, so its column {column!r} shows no sampling interval")
    steps = measure_steps(seconds)
    if steps.uneven is not None:
        before, now = (table.cell(column, row).strip() for row in (steps.uneven - 1, steps.uneven))
        raise InputError(
            f"{table.place(column, steps.uneven)}: time goes from {before} to {now}, but it must increase in even "
            f"steps (their median is {steps.usual:g}); resample the record, or cut it in two there"
        )
    if steps.deviation > TOLERANCE:
        warn_user(
            f"{table.path}, column {column!r}: steps differ by up to {steps.deviation:.1%} from their median, "
            f"{steps.usual:g}; they are taken as even, {steps.interval:g} each"
        )
    return Sampling(steps.interval, 2.0 * steps.deviation / (len(seconds) - 1))  # the first and the last time are off


def common_interval(tables: Sequence[Table], column: str) -> float:
    """The interval at which all tables are sampled; those that differ are refused."""
    first, *others = [measure_sampling(table, column) for table in tables]
    for table, sampling in zip(tables[1:], others, strict=True):
        if not is_same_interval(sampling.interval, first.interval, sampling.error + first.error):
            raise InputError(
                f"{table.path} is sampled every {sampling.interval:g}, but {tables[0].path} every {first.interval:g}; "
                "resample one"
            )
    return first.interval


def check_interval(table: Table, column: str, dt: float) -> None:
    """Refuse a table whose column of times has another interval than `dt`, the one of a model."""
    sampling = measure_sampling(table, column)
    if not is_same_interval(sampling.interval, dt, sampling.error):
        raise InputError(
            f"{table.path} is sampled every {sampling.interval:g}, but the model was fitted with dt={dt:g}; resample "
            "the file, or fit with a column of times or dt"
        )
