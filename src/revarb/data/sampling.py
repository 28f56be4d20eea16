"""Sampling intervals. Models count in samples, so the times of a record must be in even steps."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.data.table_file import Table
from revarb.errors import InputError, warn_user

TOLERANCE = 1e-3  # relative difference of two sampling intervals that are the same
JITTER = 0.05  # share of the interval by which a single step may differ from it
MIN_SAMPLES = 2  # of a record between two gaps: a single one shows no step
SHOWN = 5  # places that a warning names
SORTS = "--sort-time (sort_time=True) sorts them"


class Steps(NamedTuple):
    """The steps between times: their mean, the usual one, the largest share by which one differs, the first too far.

    `uneven` is the row after the first step that is not positive or differs by more than the jitter; None without one.
    """

    interval: float
    usual: float
    deviation: float
    uneven: int | None


class Sampling(NamedTuple):
    """The interval of a column of times, the relative error of it that jitter can cause, and the rows of each record.

    A table is one record, or several where it is split at gaps; `starts` are the times of their first rows.
    """

    interval: float
    error: float
    records: tuple[slice, ...]
    starts: tuple[float, ...]


class _TimeColumn(NamedTuple):
    """A column of times, and how messages name it and its steps."""

    table: Table
    column: str
    seconds: Float64[np.ndarray, " N"]

    @property
    def name(self) -> str:
        return f"{self.table.path}, column {self.column!r}"

    def locate(self, rows: slice) -> str:
        return f"from {self.table.locate(rows.start)} to {self.table.locate(rows.stop - 1)}"

    def describe_step(self, row: int) -> str:
        before, now = (self.table.cell(self.column, each).strip() for each in (row - 1, row))
        return f"from {before} to {now}"


def measure_steps(seconds: Float64[np.ndarray, " N"], usual: float | None = None) -> Steps:
    """Measure the steps between at least two times against the usual one, by default their median."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what overflows is uneven
        steps = np.diff(seconds)
        total = float(seconds[-1] - seconds[0])
        usual = float(np.median(steps)) if usual is None else usual
        deviations = np.abs(steps - usual) / usual
        wrong = ~((steps > 0.0) & (deviations <= JITTER)) | ~np.isfinite(total)
    row = int(np.argmax(wrong)) + 1 if wrong.any() else None
    return Steps(total / len(steps), usual, float(deviations.max()), row)


def find_gaps(seconds: Float64[np.ndarray, " N"]) -> tuple[list[int], float]:
    """The rows after gaps between at least two times, and the usual step; a gap is a longer step forward."""
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by `measure_steps`
        steps = np.diff(seconds)
        usual = float(np.sort(steps)[(len(steps) - 1) // 2])  # a step that there is, also where there are only two
        rows = np.flatnonzero(steps > (1.0 + JITTER) * usual) + 1
    return rows.tolist() if usual > 0.0 else [], usual


def is_same_interval(one: float, other: float, error: float = 0.0) -> bool:
    """Whether two sampling intervals, known up to a relative error, are the same."""
    return abs(one - other) <= (TOLERANCE + error) * other


def measure_sampling(table: Table, column: str, can_split: bool = False) -> Sampling:
    """The sampling of a column of times; uneven times are refused with the place, jitter is accepted with a warning.

    With `can_split` the message names the option that splits the record at a gap, or that sorts its rows.
    """
    times = _read_times(table, column)
    _refuse_unsorted(times, SORTS if can_split else "sort them")
    gaps = find_gaps(times.seconds)[0] if can_split else []
    return _measure_records(times, [slice(0, len(table))], gaps=gaps)


def split_at_gaps(table: Table, column: str) -> Sampling:
    """The sampling of a table that is several records: gaps in its column of times are where one ends.

    A sample alone between two gaps is left out. A warning says where the gaps are.
    """
    times = _read_times(table, column)
    _refuse_unsorted(times, SORTS)
    if measure_steps(times.seconds).uneven is None:
        return _measure_records(times, [slice(0, len(table))])
    gaps, usual = find_gaps(times.seconds)
    between = [slice(first, end) for first, end in pairwise([0, *gaps, len(table)])]
    records = [rows for rows in between if rows.stop - rows.start >= MIN_SAMPLES]
    alone = [rows.start for rows in between if rows.stop - rows.start < MIN_SAMPLES]
    if len(alone) > len(records):
        raise InputError(
            f"{times.name}: {len(alone)} of {len(table)} samples stand alone between two gaps, "
            f"the first in {table.locate(alone[0])}: the steps are not even between the gaps; resample the record"
        )
    sampling = _measure_records(times, records, usual)
    if gaps:
        _warn_about_gaps(times, gaps, alone)
    return sampling


def measure_together(tables: Sequence[Table], column: str, split_gaps: bool = False) -> list[Sampling]:
    """The samplings of tables with one interval, that of the first; those that differ are refused.

    With `split_gaps` gaps in time separate records; without, they are refused.
    """
    samplings = [
        split_at_gaps(table, column) if split_gaps else measure_sampling(table, column, can_split=True)
        for table in tables
    ]
    first = samplings[0]
    for table, sampling in zip(tables[1:], samplings[1:], strict=True):
        if not is_same_interval(sampling.interval, first.interval, sampling.error + first.error):
            raise InputError(
                f"{table.path} is sampled every {sampling.interval:g}, but {tables[0].path} every {first.interval:g}; "
                "resample one"
            )
    return [sampling._replace(interval=first.interval) for sampling in samplings]


def check_interval(table: Table, column: str, dt: float) -> None:
    """Refuse a table whose column of times has another interval than `dt`, the one of a model."""
    sampling = measure_sampling(table, column)
    if not is_same_interval(sampling.interval, dt, sampling.error):
        raise InputError(
            f"{table.path} is sampled every {sampling.interval:g}, but the model was fitted with dt={dt:g}; resample "
            "the file, or fit with a column of times or dt"
        )


def _read_times(table: Table, column: str) -> _TimeColumn:
    seconds = table.seconds(column)
    if len(seconds) < 2:
        raise InputError(f"{table.path} has a single row, so its column {column!r} shows no sampling interval")
    return _TimeColumn(table, column, seconds)


def _refuse_unsorted(times: _TimeColumn, remedy: str) -> None:
    # Times of a second record below the first one are not unsorted: some occur twice.
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by `measure_steps`
        backwards = np.diff(times.seconds) < 0.0
        are_different = bool((np.diff(np.sort(times.seconds)) > 0.0).all())
    if backwards.any() and are_different:
        row = int(np.argmax(backwards)) + 1
        raise InputError(
            f"{times.table.place(times.column, row)}: time goes back {times.describe_step(row)}: the rows are not in "
            f"order of time; {remedy}"
        )


def _measure_records(
    times: _TimeColumn, records: Sequence[slice], usual: float | None = None, gaps: Sequence[int] = ()
) -> Sampling:
    # A gap that could be split is refused with the option that splits it.
    measured = [measure_steps(times.seconds[rows], usual) for rows in records]
    for rows, steps in zip(records, measured, strict=True):
        if steps.uneven is not None:
            row = rows.start + steps.uneven
            remedy = (
                "read it as two records with --split-gaps (split_gaps=True)" if row in gaps else "cut it in two there"
            )
            raise InputError(
                f"{times.table.place(times.column, row)}: time goes {times.describe_step(row)}, but it must increase "
                f"in even steps (their median is {steps.usual:g}); resample the record, or {remedy}"
            )
    worst = max(measured, key=lambda steps: steps.deviation)
    _check_same(times, records, measured, worst.deviation)
    counts = [rows.stop - rows.start - 1 for rows in records]
    interval = worst.interval  # of a single record: an average would round it
    if len(records) > 1:
        interval = float(np.average([steps.interval for steps in measured], weights=counts))
    if worst.deviation > TOLERANCE:
        warn_user(
            f"{times.name}: steps differ by up to {worst.deviation:.1%} from their median, "
            f"{worst.usual:g}; they are taken as even, {interval:g} each"
        )
    starts = tuple(float(times.seconds[rows.start]) for rows in records)
    return Sampling(interval, _bound_error(worst.deviation, max(counts) + 1), tuple(records), starts)


def _check_same(times: _TimeColumn, records: Sequence[slice], measured: Sequence[Steps], deviation: float) -> None:
    # All records have the interval of the longest one, up to what jitter can cause in as few samples.
    lengths = [rows.stop - rows.start for rows in records]
    longest = int(np.argmax(lengths))
    reference = measured[longest].interval
    for rows, length, steps in zip(records, lengths, measured, strict=True):
        error = _bound_error(deviation, length) + _bound_error(deviation, lengths[longest])
        if not is_same_interval(steps.interval, reference, error):
            raise InputError(
                f"{times.name}: between its gaps it is sampled every {steps.interval:g} {times.locate(rows)}, "
                f"but every {reference:g} {times.locate(records[longest])}; resample one"
            )


def _bound_error(deviation: float, samples: int) -> float:
    return 2.0 * deviation / (samples - 1)  # the first and the last time are off


def _warn_about_gaps(times: _TimeColumn, gaps: Sequence[int], alone: Sequence[int]) -> None:
    table = times.table
    places = [f"{table.locate(row)} ({times.describe_step(row)})" for row in gaps[:SHOWN]]
    warn_user(
        f"{times.name}: time has {len(gaps)} gap(s), and the file is split into "
        f"{len(gaps) + 1 - len(alone)} record(s) there: {_list_places(places, len(gaps))}"
    )
    if alone:
        places = [table.locate(row) for row in alone[:SHOWN]]
        warn_user(
            f"{table.path}: {len(alone)} sample(s) alone beside a gap are left out: {_list_places(places, len(alone))}"
        )


def _list_places(places: Sequence[str], count: int) -> str:
    more = f" and {count - len(places)} more" if count > len(places) else ""
    return ", ".join(places) + more
