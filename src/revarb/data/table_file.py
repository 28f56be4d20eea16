"""Tables in files: named columns in, checked when they are read (CSV, Excel, Parquet), and out (CSV, JSON, Parquet)."""

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int

from revarb.data.csv_file import HINT, CsvForm, read_csv_rows
from revarb.data.excel_file import ENDINGS, read_excel_rows
from revarb.data.text_table import Column, TextTable
from revarb.errors import InputError, warn_user
from revarb.runtime.files import is_stream, read_bytes, write_atomic

Columns = Mapping[str, np.ndarray]


TICKS_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class ParquetFile:
    """A Parquet file: typed columns, nulls where there is no value."""

    def __init__(self, path: Path):
        self._path, self._pa = path, _import_pyarrow(f"reading {path}")
        content = self._pa.BufferReader(read_bytes(path))
        try:
            self._table = self._pa.parquet.ParquetFile(content).read()
            self.names = tuple(self._table.column_names)
        except (self._pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is not a Parquet file, or it is damaged: {error}") from None
        self._rows = np.arange(len(self))  # of the file

    def __len__(self) -> int:
        return self._table.num_rows

    def place(self, row: int) -> str:
        """A row by its number."""
        return f"row {self._rows[row]} (counted from 0)"

    def text(self, name: str, row: int) -> str:
        """A cell as NumPy writes it."""
        return str(self._table.column(name).slice(row, 1).to_numpy()[0])

    def numbers(self, name: str) -> Column:
        """A column of integers, floats, decimals or booleans, NaN where it has nulls."""
        column, types = self._table.column(name), self._pa.types
        numeric = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
        if not any(is_kind(column.type) for is_kind in numeric):
            raise InputError(f"{self._path}, column {name!r} holds values of type {column.type}, which are not numbers")
        return column.cast(self._pa.float64(), safe=False).to_numpy(), {}

    def seconds(self, name: str) -> Column:
        """A column of numbers as they are, or of timestamps or dates as seconds after the first."""
        pa, column = self._pa, self._table.column(name)
        if pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("ms"))
        if not pa.types.is_timestamp(column.type):
            return self.numbers(name)
        ticks = column.cast(pa.int64())  # subtracted as integers, or nanoseconds since 1970 would be rounded
        passed = pa.compute.subtract(ticks, ticks[0])
        return passed.cast(pa.float64(), safe=False).to_numpy() / TICKS_PER_SECOND[column.type.unit], {}

    def reorder(self, order: Int[np.ndarray, " N"]) -> None:
        """Put the rows into another order."""
        self._table, self._rows = self._table.take(order), self._rows[order]


class Table:
    """Named columns of a file: Parquet or Excel by its ending, or else CSV with a header line, written as `form` says.

    A column is converted to numbers when it is read; other columns may hold anything.
    """

    def __init__(self, path: str | os.PathLike[str], form: CsvForm | None = None):
        self.path = Path(path)
        self._file = _open(self.path, form or CsvForm())
        self.names: tuple[str, ...] = self._file.names
        doubled = [name for name, count in Counter(self.names).items() if count > 1]
        if doubled:
            raise InputError(f"{self.path} has two columns named {doubled[0]!r}; rename one")
        if not len(self):
            raise InputError(f"{self.path} has column names but no data")

    def __len__(self) -> int:
        return len(self._file)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def check_name(self, name: str) -> None:
        """Refuse a name that no column has."""
        if name not in self.names:
            hint = f"; {HINT}" if len(self.names) == 1 and isinstance(self._file, TextTable) else ""
            raise InputError(f"{self.path} has no column {name!r}; its columns are {', '.join(self.names)}{hint}")

    def columns(self, names: Sequence[str], missing: bool = False) -> Float64[np.ndarray, "N D"]:
        """The named columns as a matrix [rows, columns]. With `missing` a gap is NaN; without, it is refused."""
        values = [self._check(name, self._numbers(name), missing) for name in names]
        return np.stack(values, axis=1) if values else np.empty((len(self), 0))

    def measured(self, names: Sequence[str]) -> Float64[np.ndarray, "N D"]:
        """Columns to compare a result with: a cell that is no finite number is missing, and a warning says where."""
        return np.stack([self._measured(name) for name in names], axis=1)

    def seconds(self, name: str) -> Float64[np.ndarray, " N"]:
        """A column of times, without gaps: numbers as they are, points in time as seconds after the first."""
        self.check_name(name)
        return self._check(name, self._file.seconds(name), missing=False)

    def labels(self, name: str) -> np.ndarray:
        """A column as labels of rows: its numbers, or else its texts."""
        try:
            return self.columns([name])[:, 0]
        except InputError:
            return np.array([self.cell(name, row) for row in range(len(self))])

    def sort(self, name: str) -> None:
        """Put the rows into the order of a column of times; rows of the same time stay in theirs."""
        self._file.reorder(np.argsort(self.seconds(name), kind="stable"))

    def cell(self, name: str, row: int) -> str:
        """A cell as it can be shown."""
        return self._file.text(name, row)

    def place(self, name: str, row: int) -> str:
        """Where a person finds a cell."""
        return f"{self.path}, {self.locate(row)}, column {name!r}"

    def locate(self, row: int) -> str:
        """Where a person finds a row of the file."""
        return self._file.place(row)

    def _numbers(self, name: str) -> Column:
        self.check_name(name)
        return self._file.numbers(name)

    def _measured(self, name: str) -> Float64[np.ndarray, " N"]:
        values, odd = self._numbers(name)
        infinite = np.isinf(values)
        reasons = {**dict.fromkeys(np.flatnonzero(infinite).tolist(), "is not finite"), **odd}
        if reasons:
            row = min(reasons)
            more = f" (as are {len(reasons) - 1} more in this column)" if len(reasons) > 1 else ""
            warn_user(f"{self._describe(name, row)} {reasons[row]}; it counts as missing{more}")
        return np.where(infinite, np.nan, values)

    def _check(self, name: str, column: Column, missing: bool) -> Float64[np.ndarray, " N"]:
        values, odd = column
        if odd:
            row = min(odd)
            raise InputError(f"{self._describe(name, row)} {odd[row]}")
        self._refuse(name, np.isinf(values), "is not finite; remove or fill it")
        if not missing:
            self._refuse(name, np.isnan(values), "is no value, and only outputs may be missing; fill it")
        return values

    def _refuse(self, name: str, wrong: Bool[np.ndarray, " N"], why: str) -> None:
        if wrong.any():
            raise InputError(f"{self._describe(name, int(np.argmax(wrong)))} {why}")

    def _describe(self, name: str, row: int) -> str:
        return f"{self.place(name, row)}: {self.cell(name, row)!r}"


def _open(path: Path, form: CsvForm) -> ParquetFile | TextTable:
    ending = path.suffix.lower()
    if ending == ".parquet":
        return ParquetFile(path)
    if ending in ENDINGS:
        return TextTable(path, read_excel_rows(path, form.skip_rows), None, "row")
    return TextTable(path, read_csv_rows(path, form), form.decimal, "line")


def check_table_file(path: str | os.PathLike[str]) -> None:
    """Refuse a file whose ending names no kind of table that can be written here; called before a long computation."""
    _find_encoder(Path(path))


def write_table(path: str | os.PathLike[str], columns: Columns) -> Path:
    """Write named columns to a file of the kind that its ending says (atomic write); CSV to a pipe or a device."""
    return write_atomic(path, _find_encoder(Path(path))(columns))


def write_csv(path: str | os.PathLike[str], columns: Columns) -> Path:
    """Write named columns to a CSV file, whatever its ending (atomic write)."""
    return write_atomic(path, encode_csv(columns))


def encode_csv(columns: Columns) -> bytes:
    """CSV with a header line and all digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(_list_rows(columns))
    return text.getvalue().encode()


def _encode_json(columns: Columns) -> bytes:
    # A list of rows, which pandas.read_json and polars.read_json take; JSON has no NaN, the value that is not itself.
    rows = [
        {name: value if value == value else None for name, value in zip(columns, row, strict=True)}
        for row in _list_rows(columns)
    ]
    return json.dumps(rows, ensure_ascii=False, allow_nan=False).encode()


def _list_rows(columns: Columns) -> Any:
    return zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True)


def _encode_parquet(columns: Columns) -> bytes:
    pa, buffer = _import_pyarrow("writing Parquet"), io.BytesIO()
    table = pa.table({name: pa.array(np.asarray(values).tolist()) for name, values in columns.items()})
    pa.parquet.write_table(table, buffer)
    return buffer.getvalue()


def _find_encoder(path: Path) -> Callable[[Columns], bytes]:
    ending = ".csv" if is_stream(path) else path.suffix.lower()
    if ending == ".parquet":
        _import_pyarrow(f"writing {path}")
    encoders = {".csv": encode_csv, ".json": _encode_json, ".parquet": _encode_parquet}
    if ending not in encoders:
        wrong = f"the ending {path.suffix} is not known" if path.suffix else "it has no ending"
        raise InputError(f"cannot write the table {path}: {wrong}; name it {', '.join(encoders)}")
    return encoders[ending]


def _import_pyarrow(what: str) -> Any:
    # An optional library.
    try:
        import pyarrow.compute
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise InputError(f'{what} needs pyarrow; pip install "revarb[parquet]"') from None
    return pyarrow
