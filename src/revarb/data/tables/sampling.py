"""Sampling intervals of tables. Models count in samples, so the times of a record must be evenly spaced."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.data.even_steps import TOLERANCE, Steps, find_gaps, is_same_interval, measure_steps
from revarb.data.tables.table import Table
from revarb.errors import InputError, warn_user

MIN_PIECE = 2  # samples between two gaps: a single one shows no step
SHOWN = 5  # places that a warning names


class Sampling(NamedTuple):
    """The interval of a column of times, the relative error of it that jitter can cause, and the rows between gaps."""

    interval: float
    error: float
    pieces: tuple[slice, ...]


def measure_sampling(table: Table, column: str, can_split: bool = False) -> Sampling:
    """The sampling of a column of times; uneven times are refused with the place, jitter is accepted with a warning.

    With `can_split` the message of a gap names the option that splits the record there.
    """
    seconds = _read_times(table, column)
    steps = measure_steps(seconds)
    if steps.uneven is not None:
        raise _refuse_uneven(
            table, column, steps.uneven, steps.usual, can_split and steps.uneven in find_gaps(seconds).rows
        )
    _warn_about_jitter(table, column, steps, steps.interval)
    return Sampling(steps.interval, _bound_error(steps.deviation, len(seconds)), (slice(0, len(seconds)),))


def split_at_gaps(table: Table, column: str) -> Sampling:
    """The sampling of a table that is several records: gaps in its column of times are where one ends.

    A sample alone between two gaps is left out. A warning says where the gaps are.
    """
    seconds = _read_times(table, column)
    if measure_steps(seconds).uneven is None:
        return measure_sampling(table, column)
    gaps, usual = find_gaps(seconds)
    between = [slice(first, end) for first, end in pairwise([0, *gaps, len(seconds)])]
    pieces = [piece for piece in between if piece.stop - piece.start >= MIN_PIECE]
    alone = [piece.start for piece in between if piece.stop - piece.start < MIN_PIECE]
    if len(alone) > len(pieces):
        raise InputError(
            f"{table.path}, column {column!r}: {len(alone)} of {len(seconds)} samples stand alone between two gaps, "
            f"the first in {table.locate(alone[0])}: the steps are not even between the gaps; resample the record"
        )
    sampling = _measure_pieces(table, column, seconds, pieces, usual)
    if gaps:
        _warn_about_gaps(table, column, gaps, alone)
    return sampling


def _read_times(table: Table, column: str) -> Float64[np.ndarray, " N"]:
    seconds = table.seconds(column)
    if len(seconds) < 2:
        raise InputError(f"{table.path} has a single row, so its column {column!r} shows no sampling interval")
    return seconds


def _measure_pieces(
    table: Table, column: str, seconds: Float64[np.ndarray, " N"], pieces: Sequence[slice], usual: float
) -> Sampling:
    measured = [measure_steps(seconds[piece], usual) for piece in pieces]
    for piece, steps in zip(pieces, measured, strict=True):
        if steps.uneven is not None:
            raise _refuse_uneven(table, column, piece.start + steps.uneven, steps.usual)
    worst = max(measured, key=lambda steps: steps.deviation)
    _check_same(table, column, pieces, measured, worst.deviation)
    counts = [piece.stop - piece.start - 1 for piece in pieces]
    interval = float(np.average([steps.interval for steps in measured], weights=counts))
    _warn_about_jitter(table, column, worst, interval)
    return Sampling(interval, _bound_error(worst.deviation, max(counts) + 1), tuple(pieces))


def _check_same(
    table: Table, column: str, pieces: Sequence[slice], measured: Sequence[Steps], deviation: float
) -> None:
    # All pieces have the interval of the longest one, up to what jitter can cause in as few samples.
    lengths = [piece.stop - piece.start for piece in pieces]
    longest = int(np.argmax(lengths))
    reference = measured[longest].interval
    for piece, length, steps in zip(pieces, lengths, measured, strict=True):
        error = _bound_error(deviation, length) + _bound_error(deviation, lengths[longest])
        if not is_same_interval(steps.interval, reference, error):
            raise InputError(
                f"{table.path}, column {column!r}: between its gaps it is sampled every {steps.interval:g} from "
                f"{table.locate(piece.start)} to {table.locate(piece.stop - 1)}, but every {reference:g} from "
                f"{table.locate(pieces[longest].start)} to {table.locate(pieces[longest].stop - 1)}; resample one"
            )


def _bound_error(deviation: float, samples: int) -> float:
    return 2.0 * deviation / (samples - 1)  # the first and the last time are off


def _refuse_uneven(table: Table, column: str, row: int, usual: float, splits: bool = False) -> InputError:
    before, now = _times_around(table, column, row)
    remedy = "read it as two records with --split-gaps (split_gaps=True)" if splits else "cut it in two there"
    return InputError(
        f"{table.place(column, row)}: time goes from {before} to {now}, but it must increase in even "
        f"steps (their median is {usual:g}); resample the record, or {remedy}"
    )


def _times_around(table: Table, column: str, row: int) -> tuple[str, str]:
    return table.cell(column, row - 1).strip(), table.cell(column, row).strip()


def _warn_about_jitter(table: Table, column: str, steps: Steps, interval: float) -> None:
    if steps.deviation > TOLERANCE:
        warn_user(
            f"{table.path}, column {column!r}: steps differ by up to {steps.deviation:.1%} from their median, "
            f"{steps.usual:g}; they are taken as even, {interval:g} each"
        )


def _warn_about_gaps(table: Table, column: str, gaps: Sequence[int], alone: Sequence[int]) -> None:
    places = [
        "{} (from {} to {})".format(table.locate(row), *_times_around(table, column, row)) for row in gaps[:SHOWN]
    ]
    records = len(gaps) + 1 - len(alone)
    warn_user(
        f"{table.path}, column {column!r}: time has {len(gaps)} gap(s), and the file is split into {records} record(s) "
        f"there: {_list_places(places, len(gaps))}"
    )
    if alone:
        places = [table.locate(row) for row in alone[:SHOWN]]
        warn_user(
            f"{table.path}: {len(alone)} sample(s) alone beside a gap are left out: {_list_places(places, len(alone))}"
        )


def _list_places(places: Sequence[str], count: int) -> str:
    more = f" and {count - len(places)} more" if count > len(places) else ""
    return ", ".join(places) + more


def common_interval(tables: Sequence[Table], column: str) -> float:
    """The interval at which all tables are sampled; those that differ are refused."""
    return measure_together(tables, column)[0].interval


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
