"""Records from CSV, Excel and Parquet files."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from revarb.data.csv_file import CsvForm
from revarb.data.quality import warn_about_quality
from revarb.data.sampling import Sampling, measure_together
from revarb.data.series import Series
from revarb.data.table_file import Table
from revarb.errors import InputError, describe

File = str | os.PathLike[str]


class Times(NamedTuple):
    """Where the sampling interval is from, a column of times or a number, and what is done with the column.

    The rows are sorted by it, and gaps in it separate records.
    """

    column: str | None = None
    dt: float | None = None
    split_gaps: bool = False
    sort: bool = False


def read_records(
    files: File | Sequence[File],
    *,
    inputs: str | Sequence[str] = (),
    outputs: str | Sequence[str],
    time: str | None = None,
    dt: float | None = None,
    decimal: str | None = None,
    separator: str | None = None,
    skip_rows: int = 0,
    split_gaps: bool = False,
    sort_time: bool = False,
) -> list[Series]:
    """Read named columns of one or more tables; every file is one record.

    A `QualityWarning` names columns that a sensor or a logger may have distorted: clipped, rounded coarsely, or stuck
    at one value.

    Parameters
    ----------
    files : path or list of paths
        CSV with a header line (also compressed by gzip); Excel (the first sheet) or Parquet by its ending.
    inputs : str or list of str
        Input columns; none for a system without inputs. Inputs have no gaps.
    outputs : str or list of str
        Output columns. An empty cell, NaN, NA, N/A, #N/A, #NV, null, - or ? is a missing value.
    time : str, optional
        Column of times, in seconds, in ISO 8601 or as dd.mm.yyyy hh:mm:ss. It must increase in even steps, which give
        `dt`; steps that differ by up to 5 % are accepted with a warning. A model that is fitted to the records
        remembers the column.
    dt : float, optional
        Sampling interval, where there is no column of times; default 1.
    decimal : "." or ",", optional
        Decimal sign of CSV files; by default found from the file.
    separator : str, optional
        Separator of CSV files: ",", ";", "|", "tab" or "space"; by default found from the file.
    skip_rows : int
        Number of lines above the header of CSV files.
    split_gaps : bool
        Split a file at gaps in its column of times into several records, with a warning that says where; without, a gap
        is refused. A gap is a step forward that is longer than the usual one; between gaps the steps must be even, with
        one interval. A single sample between two gaps is left out.
    sort_time : bool
        Sort the rows of a file by its column of times first; without, rows that are not in order are refused.

    Returns
    -------
    list of Series
        One record per file, or more where files are split, with the names of its columns.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import revarb
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder) / "tank.csv"
    ...     _ = table.write_text("t,valve,level\\n0.0,1,0.2\\n0.5,0,0.4\\n1.0,1,\\n")
    ...     [record] = revarb.read_records(table, inputs="valve", outputs="level", time="t")
    >>> record
    Series(3 samples, inputs ('valve',), outputs ('level',), dt=0.5, 1 of 3 output values missing)

    A file with a gap in time is two records:

    >>> import warnings
    >>> with TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
    ...     table = Path(folder) / "tank.csv"
    ...     _ = table.write_text("t,level\\n0,0.2\\n1,0.4\\n2,0.3\\n9,0.1\\n10,0.2\\n")
    ...     records = revarb.read_records(table, outputs="level", time="t", split_gaps=True)
    >>> [len(record) for record in records]
    [3, 2]
    >>> print(str(caught[0].message).partition("column ")[2])
    't': time has 1 gap(s), and the file is split into 2 record(s) there: line 5 (from 2 to 9)
    """
    form, times = CsvForm(decimal, separator, skip_rows), Times(time, dt, split_gaps, sort_time)
    return [record for several in read_by_file(files, inputs, outputs, times, form) for record in several]


def read_by_file(
    files: File | Sequence[File],
    inputs: str | Sequence[str],
    outputs: str | Sequence[str],
    times: Times,
    form: CsvForm,
) -> list[list[Series]]:
    """The records of every file, as in `read_records`: one, or several where it is split at gaps in time."""
    input_names, output_names = _check_names("inputs", inputs), _check_names("outputs", outputs)
    _check_times(times)
    if times.column in (*input_names, *output_names):
        raise InputError(
            f"column {times.column!r} has the times, and cannot be an input or an output too; leave it out"
        )
    tables = [Table(path, form) for path in _check_files(files)]
    by_file, spans = [], []
    for table, sampling in zip(tables, _measure(tables, times), strict=True):
        u, y = table.columns(input_names), table.columns(output_names, missing=True)
        record = Series(u, y, sampling.interval, input_names, output_names, time_name=times.column)
        by_file.append([
            replace(record[rows], start_time=start)
            for rows, start in zip(sampling.records, sampling.starts, strict=True)
        ])  # fmt: skip
        spans += [(table, rows.start) for rows in sampling.records]

    def locate(record: int, first: int, last: int) -> str:
        table, start = spans[record]
        return f"{table.path}, {table.locate(start + first)} to {table.locate(start + last)}"

    warn_about_quality([record for records in by_file for record in records], locate)
    return by_file


def _check_files(files: File | Sequence[File]) -> list[Path]:
    several = [files] if isinstance(files, str | os.PathLike) else files
    is_list = isinstance(several, list | tuple) and len(several) > 0
    if not is_list or not all(isinstance(each, str | os.PathLike) for each in several):
        raise InputError(f"files must be a path or a list of paths, received {describe(files)}")
    return [Path(each) for each in several]


def _check_names(what: str, names: str | Sequence[str]) -> tuple[str, ...]:
    several = (names,) if isinstance(names, str) else names
    if not isinstance(several, list | tuple) or not all(isinstance(name, str) for name in several):
        raise InputError(f"{what} must be a column name or a list of them, received {describe(names)}")
    return tuple(several)


def _check_times(times: Times) -> None:
    asked = {"split_gaps": times.split_gaps, "sort_time": times.sort}
    for name, value in asked.items():
        if not isinstance(value, bool):
            raise InputError(f"{name} must be true or false, received {describe(value)}")
    if times.column is not None and times.dt is not None:
        raise InputError("dt and a column of times both give the sampling interval; pass one of them")
    for name, value in asked.items():
        if times.column is None and value:
            option = f"--{name.replace('_', '-')} ({name}=True)"
            raise InputError(f"{option} needs the column of times; give --time COLUMN (time=)")


def _measure(tables: Sequence[Table], times: Times) -> list[Sampling]:
    if times.column is not None:
        for table in tables if times.sort else ():
            table.sort(times.column)
        return measure_together(tables, times.column, times.split_gaps)
    dt = 1.0 if times.dt is None else times.dt
    return [Sampling(dt, 0.0, (slice(0, len(table)),), (0.0,)) for table in tables]
