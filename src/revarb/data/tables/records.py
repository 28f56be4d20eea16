"""Records from CSV and Parquet files."""

import os
from collections.abc import Sequence
from pathlib import Path

from revarb.data.series import Series
from revarb.data.tables.csv_form import CsvForm
from revarb.data.tables.sampling import common_interval
from revarb.data.tables.table import Table
from revarb.errors import InputError, describe

File = str | os.PathLike[str]


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
) -> list[Series]:
    """Read named columns of one or more tables; every file is one record.

    Parameters
    ----------
    files : path or list of paths
        CSV with a header line (also compressed by gzip), or Parquet by its ending.
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

    Returns
    -------
    list of Series
        One record per file, with the names of its columns.

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
    """
    input_names, output_names = _check_names("inputs", inputs), _check_names("outputs", outputs)
    form = CsvForm(decimal, separator, skip_rows)
    tables = [Table(path, form) for path in _check_files(files)]
    interval = _interval(tables, dt, time)
    return [
        Series(
            table.columns(input_names),
            table.columns(output_names, missing=True),
            interval,
            input_names,
            output_names,
            time_name=time,
        )
        for table in tables
    ]


def _check_files(files: File | Sequence[File]) -> list[Path]:
    several = [files] if isinstance(files, str | os.PathLike) else files
    if (
        not isinstance(several, list | tuple)
        or not several
        or not all(isinstance(each, str | os.PathLike) for each in several)
    ):
        raise InputError(f"files must be a path or a list of paths, received {describe(files)}")
    return [Path(each) for each in several]


def _check_names(what: str, names: str | Sequence[str]) -> tuple[str, ...]:
    several = (names,) if isinstance(names, str) else names
    if not isinstance(several, list | tuple) or not all(isinstance(name, str) for name in several):
        raise InputError(f"{what} must be a column name or a list of them, received {describe(names)}")
    return tuple(several)


def _interval(tables: Sequence[Table], dt: float | None, time: str | None) -> float:
    if time is None:
        return 1.0 if dt is None else dt
    if dt is not None:
        raise InputError("dt and a column of times both give the sampling interval; pass one of them")
    return common_interval(tables, time)
