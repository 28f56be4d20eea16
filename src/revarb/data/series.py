"""Records: inputs and outputs of a system, checked once, when a `Series` is made from arrays or data frames."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from revarb.data.benchmark_data import BenchmarkData, is_benchmark_data, unpack_benchmark
from revarb.data.dataframes import (
    RowIndex,
    TableValues,
    column_names,
    is_encodable,
    read_values,
    refuse_values,
    same_labels,
)
from revarb.data.sampling import TOLERANCE, is_same_interval, measure_steps
from revarb.errors import InputError, check_number, describe, warn_user

MIN_ROWS = 12  # measured rows of all records together, for a linear model of one lag


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Series:
    """One record of a system: inputs `u` and outputs `y`, sampled at a constant interval.

    Parameters
    ----------
    u : array-like [T, inputs] or data frame
        Inputs, one row per sample; a vector is one column. None (or a matrix without columns) for a system without
        inputs. Inputs have no gaps. Or, alone, an object of the package nonlinear_benchmarks, with its sampling time.
    y : array-like [T, outputs] or data frame
        Outputs. NaN is a missing value.
    dt : float, optional
        Sampling interval; default: that of row labels which are times (in seconds), else 1.
    input_names, output_names : list of str, optional
        Names of the columns; by default those of the data frame, else "u", "y" or "u0", "u1", …
    index : RowIndex, optional
        Row labels; taken from the data frame.
    time_name : str, optional
        Name of the column of times; set by `read_records`, and remembered by a model.
    start_time : float
        Time of the first row, for pictures; set by `read_records` where there is a column of times.

    Attributes
    ----------
    u, y : read-only float64 arrays [T, inputs] and [T, outputs]
    missing : int
        Number of output values that were not measured.

    Examples
    --------
    >>> import revarb
    >>> revarb.Series(u=[0.0, 1.0, 0.5], y=[0.1, 0.2, float("nan")], dt=0.5)
    Series(3 samples, inputs ('u',), outputs ('y',), dt=0.5, 1 of 3 output values missing)

    A slice of consecutive rows is a record again:

    >>> record = revarb.Series(u=[0.0, 1.0, 0.5, 0.2], y=[0.1, 0.2, 0.6, 0.4])
    >>> record[:3]
    Series(3 samples, inputs ('u',), outputs ('y',), dt=1.0)
    """

    u: Float64[np.ndarray, "N Du"]
    y: Float64[np.ndarray, "N Dy"]
    dt: float
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    index: RowIndex | None
    time_name: str | None
    start_time: float

    def __init__(
        self,
        u: Any,
        y: Any = None,
        dt: float | None = None,
        input_names: Iterable[str] | None = None,
        output_names: Iterable[str] | None = None,
        index: RowIndex | None = None,
        time_name: str | None = None,
        start_time: float = 0.0,
    ):
        if y is None:
            u, y, dt = unpack_benchmark(u, dt, first=isinstance(self, Window))
        y_values = read_values("y", y)
        u_values = TableValues(np.empty((len(y_values.matrix), 0))) if u is None else read_values("u", u)
        u_matrix, y_matrix = u_values.matrix, y_values.matrix
        if len(u_matrix) != len(y_matrix):
            raise InputError(
                f"u and y must have the same number of rows: u has {len(u_matrix)}, y has {len(y_matrix)}; "
                "cut them to the samples that both have"
            )
        if y_matrix.shape[1] == 0:
            raise InputError("y has no columns: a record needs at least one output")
        for matrix in (u_matrix, y_matrix):
            matrix.flags.writeable = False
        input_names = u_values.names if input_names is None else input_names
        output_names = y_values.names if output_names is None else output_names
        object.__setattr__(self, "u", u_matrix)
        object.__setattr__(self, "y", y_matrix)
        object.__setattr__(self, "input_names", column_names("u", input_names, u_matrix.shape[1]))
        object.__setattr__(self, "output_names", column_names("y", output_names, y_matrix.shape[1]))
        object.__setattr__(self, "index", _check_index(index, u_values.index, y_values.index))
        object.__setattr__(self, "time_name", check_time_name(time_name))
        object.__setattr__(self, "start_time", check_number("start_time", start_time))
        object.__setattr__(self, "dt", _find_interval(dt, y_values.index or u_values.index))
        refuse_values("u", u_matrix, ~np.isfinite(u_matrix), self.input_names)
        refuse_values("y", y_matrix, np.isinf(y_matrix), self.output_names)
        both = [name for name in self.input_names if name in self.output_names]
        if both:
            raise InputError(f"column {both[0]!r} is named as an input and as an output; it can only be one of them")

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: Any) -> "Series":
        """The record of consecutive rows, e.g. the first half: `record[: len(record) // 2]`."""
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise InputError(f"a record is cut by a slice of consecutive rows, as in record[:500]; received {rows!r}")
        labels = None if self.index is None or self.index.labels is None else self.index.labels[rows]
        index = None if self.index is None else self.index._replace(labels=labels)
        start = self.start_time + rows.indices(len(self))[0] * self.dt
        return type(self)(
            self.u[rows], self.y[rows], self.dt, self.input_names, self.output_names, index, self.time_name, start
        )

    def __repr__(self) -> str:
        columns = f"inputs {self.input_names}, outputs {self.output_names}"
        gaps = f", {self.missing} of {self.y.size} output values missing" if self.missing else ""
        return f"{type(self).__name__}({len(self)} samples, {columns}, dt={self.dt}{gaps})"

    @property
    def missing(self) -> int:
        """Number of output values that were not measured."""
        return int(np.isnan(self.y).sum())


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Window(Series):
    """A record measured just before a simulation starts; NaN in `y` where nothing was measured.

    `model.simulate(u, start=Window(u_before, y_before))` starts from the latent states inferred from it by filtering.

    Parameters
    ----------
    u : array-like [T, inputs] or data frame
        Inputs up to the last sample before the simulation; None for a system without inputs. Or, alone, a test part of
        the package nonlinear_benchmarks, of which only the first samples are taken that it allows for this.
    y : array-like [T, outputs] or data frame
        Outputs at the same samples.
    dt : float, optional
        Sampling interval, that of the model; default as in `Series`.
    input_names, output_names : list of str, optional
        Names of the columns, those of the model; by default as in `Series`.
    index : RowIndex, optional
        Row labels; taken from the data frame.
    time_name : str, optional
        Name of the column of times, as in `Series`.
    start_time : float
        Time of the first row, as in `Series`.

    Examples
    --------
    >>> import revarb
    >>> revarb.Window(u=[0.0, 1.0, 0.5], y=[0.1, 0.2, 0.6])
    Window(3 samples, inputs ('u',), outputs ('y',), dt=1.0)
    """


def _check_index(given: RowIndex | None, u: RowIndex | None, y: RowIndex | None) -> RowIndex | None:
    if not isinstance(given, RowIndex | None):
        raise InputError(f"index is taken from the data frames u and y, received a {type(given).__name__}")
    if not same_labels(u, y):
        raise InputError("u and y have different row labels; align them first, e.g. y.loc[u.index]")
    return next((each for each in (given, y, u) if each is not None), None)


def _find_interval(dt: float | None, index: RowIndex | None) -> float:
    # Row labels that are times must be in even steps, and agree with a given dt.
    given = None if dt is None else check_number("dt", dt, above=0.0)
    interval = None if index is None else find_label_interval("u and y", index)
    if interval is None or given is None:
        return next(each for each in (interval, given, 1.0) if each is not None)
    if not is_same_interval(interval, given):
        raise InputError(f"dt is {given:g}, but the row labels of u and y are {interval:g} s apart; leave dt out")
    return given


def find_label_interval(name: str, index: RowIndex) -> float | None:
    """The interval in seconds of row labels that are times; None where they are not. Uneven ones are refused."""
    seconds = index.seconds()
    if seconds is None or len(seconds) < 2:
        return None
    steps = measure_steps(seconds)
    if steps.uneven is not None:
        before, now = index.labels[steps.uneven - 1], index.labels[steps.uneven]  # pyright: ignore[reportOptionalSubscript]
        raise InputError(
            f"the row labels of {name} go from {before} to {now}, but they must increase in even steps (their median "
            f"is {steps.usual:g} s); resample the record, or cut it in two there"
        )
    if steps.deviation > TOLERANCE:
        warn_user(f"the row labels of {name} are not quite even: steps differ by up to {steps.deviation:.1%}")
    return steps.interval


def as_records(records: Series | BenchmarkData | Sequence[Series | BenchmarkData]) -> tuple[Series, ...]:
    """One record or several, as a tuple whose members agree in their columns and sampling."""
    if is_benchmark_data(records):
        records = Series(records)
    if not isinstance(records, Series | Sequence | np.ndarray):
        raise InputError(
            f"a record must be a Series or a list of Series, received {type(records).__name__}; wrap it: "
            "revarb.Series(u, y)"
        )
    given = (records,) if isinstance(records, Series) else records
    several: tuple[Any, ...] = tuple(Series(each) if is_benchmark_data(each) else each for each in given)
    if not several:
        raise InputError("no record was given: pass a Series or a list of Series")
    for position, record in enumerate(several):
        if not isinstance(record, Series):
            raise InputError(
                f"record {position} is a {type(record).__name__}, not a Series; wrap it: revarb.Series(u, y), or read "
                "a file: revarb.read_records"
            )
        for what in ("input_names", "output_names", "dt"):
            ours, first = getattr(record, what), getattr(several[0], what)
            if not (is_same_interval(ours, first) if what == "dt" else ours == first):
                raise InputError(f"records must agree in {what}: record 0 has {first}, record {position} has {ours}")
    return several


def check_enough_rows(records: Sequence[Series]) -> None:
    """Refuse records with so few measured rows that they determine no model."""
    measured = sum(int(np.isfinite(record.y).any(axis=1).sum()) for record in records)
    if measured < MIN_ROWS:
        raise InputError(
            f"{measured} measured row(s) are too few to learn from; a fit needs at least {MIN_ROWS}, and a model whose "
            "error can be measured a hundred or more; pass longer records"
        )


def check_time_name(name: object) -> str | None:
    """The name of a column of times; None without one."""
    if name is None or (isinstance(name, str) and is_encodable(name)):
        return name
    raise InputError(f"a column of times must be named by a text, received {describe(name)}")
