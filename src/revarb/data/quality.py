"""Warnings about columns that a sensor or a logger may have distorted, clipped, rounded coarsely, or stuck; and rows.

They are about what can be seen in the values, which are never changed: nothing is wrong where the system itself has
such a limit or is at rest. Inputs are not judged by their number of values: test signals have few.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int

from revarb.data.drift import find_drift
from revarb.data.row_order import look_shuffled
from revarb.data.series import Series
from revarb.errors import QualityWarning, warn_user

Locate = Callable[[int, int, int], str]
"""A function that takes a record, counted from 0, its first and its last row, and says where they are."""

MIN_VALUES = 50  # fewer measured values show nothing of all this
FEW_VALUES = 10  # a column with at most this many different values has levels, not limits
ABRUPT = 0.25  # steps to and from a limit are at least this share of the usual step: what settles slows down before,
NEIGHBOUR, SLOW = 3.0, 1e-3  # this many times the resolution, and this many standard deviations;
STEADY = 0.7  # ratio of a step to the one before it, below which the signal slows down;
LIMIT_ROWS, LIMIT_SHARE = 5, 0.02  # this many rows, and this share of them, are at the limit,
EXCESS = 10  # and this many times more than at a usual value
MIN_VISITS, MAX_SHARE = 3, 0.5  # of an input at a limit, where it may be held or rest on purpose
RAMP = 1.05  # ratio of the quartiles of an input's steps, below which it consists of ramps
REPEATS = 5  # a column is rounded where every value occurs this often on average,
RETURNS = 2  # and in this many runs: where the values are not on a grid, they may be those of a slow sensor, held;
ROUNDING = 0.05  # and coarsely where rounding alone is an error of this many standard deviations
STUCK_ROWS, STUCK_FACTOR = 20, 10  # a run that is stuck has this many rows, and this many times the usual number,
MOVING_SHARE = 0.25  # while this share of the values is in shorter runs
INPUT_MOVE = 1.0  # a system that settled is not at rest where an input moves by this many standard deviations
SHOWN = 5  # columns that a warning names

CLIPPED_OUTPUT = (
    "if a sensor or logger was at its limit there, make these values missing (NaN) or measure with a wider range; if "
    "it is a limit of the system, nothing is wrong"
)
CLIPPED_INPUT = (
    "if a sensor or logger was at its limit there, pass the signal that acted on the system instead; if that was "
    "limited itself, nothing is wrong"
)
ROUNDED = "log it with more digits, or measure it with a finer resolution"
SHUFFLED = (
    "the rows may not be in order of time: no column depends on the rows before it, as after a shuffle, and there are "
    "no dynamics to learn; pass the rows as they were measured, or sort them by a column of times (--time COLUMN "
    "--sort-time, in Python time= and sort_time=True)"
)
DRIFTS = (
    "a model of all of it averages over both, and its bands are not for what comes after; leave out what is no longer "
    "true, or measure what changes as a further input"
)
STUCK = "if a sensor or logger hung there, make these values missing (NaN); if the system stood still, nothing is wrong"


def warn_about_quality(records: Sequence[Series], locate: Locate | None = None) -> None:
    """Warn once about each kind of trouble in these records, with the first column that has it and the names of others.

    `locate` says where rows are; by default they are counted from 0.
    """
    with np.errstate(all="ignore"):  # values that overflow are not judged
        findings = list(_find_all(records, locate or partial(_name_rows, len(records) > 1)))
        shuffled = look_shuffled(records)
    by_advice: dict[str, list[_Finding]] = {}
    for finding in findings:
        by_advice.setdefault(finding.advice, []).append(finding)
    for advice, [first, *others] in by_advice.items():
        names = [repr(each.name) for each in others[:SHOWN]]
        more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
        likewise = f"; likewise {', '.join(names)}{more}" if others else ""
        warn_user(f"{first.side} {first.name!r} {first.seen}{likewise}; {advice}", QualityWarning)
    if shuffled:
        warn_user(SHUFFLED, QualityWarning)


class _Finding(NamedTuple):
    side: str
    name: str
    seen: str
    advice: str


class _Runs(NamedTuple):
    """Runs of equal values in a column: record, first row, length, value, and the steps before and after.

    A step is NaN where the record ends or a value is missing.
    """

    record: Int[np.ndarray, " K"]
    first: Int[np.ndarray, " K"]
    length: Int[np.ndarray, " K"]
    value: Float64[np.ndarray, " K"]
    before: Float64[np.ndarray, " K"]
    after: Float64[np.ndarray, " K"]
    steps: Float64[np.ndarray, " S"]  # all between neighbouring runs

    @property
    def rows(self) -> int:
        """The number of measured values."""
        return int(self.length.sum())

    @property
    def spread(self) -> float:
        """The standard deviation of the values."""
        return float(np.std(np.repeat(self.value, self.length)))

    @property
    def abrupt_step(self) -> float:
        """The least step of a signal that does not settle."""
        resolution = float(np.diff(np.unique(self.value)).min())
        return max(ABRUPT * float(np.median(self.steps)), NEIGHBOUR * resolution, SLOW * self.spread)

    def count_values(self) -> tuple[Float64[np.ndarray, " V"], Int[np.ndarray, " V"]]:
        """The different values in ascending order, and the number of rows with each."""
        different, place = np.unique(self.value, return_inverse=True)
        return different, np.bincount(place, weights=self.length).astype(np.int64)

    def locate_longest(self, which: Bool[np.ndarray, " K"], locate: Locate) -> tuple[int, str]:
        """The length of the longest of these runs, and where it is."""
        longest = int(np.argmax(np.where(which, self.length, 0)))
        first, length = int(self.first[longest]), int(self.length[longest])
        return length, locate(int(self.record[longest]), first, first + length - 1)


def _find_all(records: Sequence[Series], locate: Locate) -> Iterator[_Finding]:
    for column, name in enumerate(records[0].input_names):
        runs = _find_runs([record.u[:, column] for record in records])
        if _is_judged(runs):
            yield from _find_clipped("input", name, runs, locate)
    for column, name in enumerate(records[0].output_names):
        runs = _find_runs([record.y[:, column] for record in records])
        if _is_judged(runs):
            clipped = list(_find_clipped("output", name, runs, locate))
            yield from clipped
            yield from _find_rounded(name, runs)
            yield from [] if clipped else _find_stuck(name, runs, records, locate)
    for number, record in enumerate(records):
        for column in np.flatnonzero(find_drift(record)):
            where = f" of record {number}" if len(records) > 1 else ""
            seen = f"drifts: the last third{where} is unlike the first two, by the errors of a linear model of these"
            yield _Finding("output", record.output_names[column], seen, DRIFTS)


def _name_rows(several: bool, record: int, first: int, last: int) -> str:
    return f"rows {first} to {last}{f' of record {record}' if several else ''}"


def _is_judged(runs: _Runs) -> bool:
    # A constant column is refused by every fit. There are no steps where every other value is missing.
    return runs.rows >= MIN_VALUES and len(np.unique(runs.value)) > 1 and len(runs.steps) > 0


def _find_runs(columns: Sequence[Float64[np.ndarray, " _"]]) -> _Runs:
    values = np.concatenate([np.append(column, np.nan) for column in columns])  # no step leads to the next record
    begins = np.cumsum([0, *(len(column) + 1 for column in columns)])
    first = np.flatnonzero(values != np.append(np.nan, values[:-1]))
    length, value = np.diff(np.append(first, len(values))), values[first]
    steps = np.abs(np.diff(value))
    before, after = _measure_approach(steps), _measure_approach(steps[::-1])[::-1]
    record = np.searchsorted(begins, first, side="right") - 1
    runs = (record, first - begins[record], length, value, before, after)
    kept = np.isfinite(value)  # a missing value is no run
    return _Runs(*(each[kept] for each in runs), steps=steps[np.isfinite(steps)])


def _measure_approach(steps: Float64[np.ndarray, " S"]) -> Float64[np.ndarray, " K"]:
    # Before every run: its last step, or the one before that if larger, unless the steps were becoming smaller then.
    # A limit cuts the last step off; what settles has smaller and smaller ones.
    first = np.full(2, np.nan)
    last, second, third = steps, np.concatenate([first[:1], steps[:-1]]), np.concatenate([first, steps[:-2]])
    steady = second >= STEADY * np.nan_to_num(third[: len(steps)])
    return np.concatenate([first[:1], np.where(steady & (second > last), second, last)])


def _find_clipped(side: str, name: str, runs: _Runs, locate: Locate) -> Iterator[_Finding]:
    different, counts = runs.count_values()
    if len(different) <= FEW_VALUES:
        return
    limits, at_limits = [], np.zeros(len(runs.value), dtype=bool)
    enough = max(LIMIT_ROWS, LIMIT_SHARE * runs.rows, EXCESS * float(np.median(counts)))
    abrupt = np.minimum(runs.before, runs.after) >= runs.abrupt_step
    for word, limit, count in (("smallest", different[0], counts[0]), ("largest", different[-1], counts[-1])):
        visits = abrupt & (runs.value == limit)
        if runs.length[visits].sum() >= enough and (side == "output" or _is_limit_of_input(runs, visits, limit)):
            limits.append(f"at its {word} value, {limit:g}, in {count}")
            at_limits |= visits
    if limits:
        length, where = runs.locate_longest(at_limits, locate)
        seen = f"is {' and '.join(limits)} of {runs.rows} rows, up to {length} in a row ({where})"
        yield _Finding(side, name, seen, CLIPPED_INPUT if side == "input" else CLIPPED_OUTPUT)


def _is_limit_of_input(runs: _Runs, visits: Bool[np.ndarray, " K"], limit: float) -> bool:
    # Not its value at rest, nor a level that a test signal stays at once or twice, or reaches by ramps.
    rests = limit == 0.0 or runs.length[visits].sum() > MAX_SHARE * runs.rows
    slow, fast = np.quantile(runs.steps, [0.25, 0.75])
    return int(visits.sum()) >= MIN_VISITS and not rests and bool(fast > RAMP * slow)


def _find_rounded(name: str, runs: _Runs) -> Iterator[_Finding]:
    different = np.unique(runs.value)
    if runs.rows < REPEATS * len(different):
        return
    gaps = np.diff(different)
    multiples = gaps / gaps.min()
    on_grid = bool(np.allclose(multiples, np.round(multiples), rtol=0.0, atol=0.1))
    resolution = float(gaps.min() if on_grid else np.median(gaps))
    error = resolution / np.sqrt(12.0) / runs.spread
    if ROUNDING <= error < np.inf and (on_grid or len(runs.value) >= RETURNS * len(different)):
        count = f"has only {len(different)} different values in {runs.rows} rows, {resolution:g} apart"
        seen = f"{count}: rounding alone is an error of {error:.2f} standard deviations, which no model explains"
        yield _Finding("output", name, seen, ROUNDED)


def _find_stuck(name: str, runs: _Runs, records: Sequence[Series], locate: Locate) -> Iterator[_Finding]:
    moving = runs.length < STUCK_ROWS
    if runs.length[moving].sum() < MOVING_SHARE * runs.rows:
        return
    usual = float(np.median(np.repeat(runs.length[moving], runs.length[moving])))
    stuck = ~moving & (runs.length >= STUCK_FACTOR * usual)
    scale = np.std(np.concatenate([record.u for record in records]), axis=0)
    settled = ~(runs.before >= runs.abrupt_step)
    for run in np.flatnonzero(stuck & settled):
        stuck[run] = _do_inputs_move(records[runs.record[run]], int(runs.first[run]), int(runs.length[run]), scale)
    if stuck.any():
        length, where = runs.locate_longest(stuck, locate)
        times = "" if stuck.sum() == 1 else f", the longest of {stuck.sum()} such runs"
        seen = f"keeps one value for {length} rows ({where}{times}), usually for {usual:g}"
        yield _Finding("output", name, seen, STUCK)


def _do_inputs_move(record: Series, first: int, length: int, scale: Float64[np.ndarray, " Du"]) -> bool:
    # In the first half: at rest, an output keeps its value until an input moves, and for the dead time after that.
    half = record.u[first : first + length // 2 + 1]
    return not record.input_names or bool((np.ptp(half, axis=0) >= INPUT_MOVE * scale).any())
