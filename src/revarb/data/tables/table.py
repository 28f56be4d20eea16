"""A table in a file: named columns, checked when they are read."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float64

from revarb.data.tables.csv_cells import CsvCells
from revarb.data.tables.csv_form import CsvForm
from revarb.data.tables.csv_rows import HINT
from revarb.data.tables.table_cells import Cells, Column
from revarb.errors import InputError, warn_user


class Table:
    """Named columns of a file: Parquet by its ending, or else CSV with a header line, written as `form` says.

    A column is converted to numbers when it is read; other columns may hold anything.
    """

    def __init__(self, path: str | os.PathLike[str], form: CsvForm | None = None):
        self.path = Path(path)
        self._cells = _cells(self.path, form or CsvForm())
        self.names = self._cells.names
        doubled = [name for name, count in Counter(self.names).items() if count > 1]
        if doubled:
            raise InputError(f"{self.path} has two columns named {doubled[0]!r}; rename one")
        if not len(self):
            raise InputError(f"{self.path} has column names but no data")

    def __len__(self) -> int:
        return len(self._cells)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def columns(self, names: Sequence[str], missing: bool = False) -> Float64[np.ndarray, "N D"]:
        """The named columns as a matrix [rows, columns]. With `missing` a gap is NaN; without, it is refused."""
        values = [self._column(name, missing) for name in names]
        return np.stack(values, axis=1) if values else np.empty((len(self), 0))

    def measured(self, names: Sequence[str]) -> Float64[np.ndarray, "N D"]:
        """Columns to compare a result with: a cell that is no finite number is missing, and a warning says where."""
        return np.stack([self._measured(name) for name in names], axis=1)

    def seconds(self, name: str) -> Float64[np.ndarray, " N"]:
        """A column of times, without gaps: numbers as they are, points in time as seconds after the first."""
        self._check_name(name)
        return self._checked(name, self._cells.seconds(name), missing=False)

    def labels(self, name: str) -> np.ndarray:
        """A column as labels of rows: its numbers, or else its texts."""
        try:
            return self.columns([name])[:, 0]
        except InputError:
            return np.array([self.cell(name, row) for row in range(len(self))])

    def cell(self, name: str, row: int) -> str:
        """A cell as it can be shown."""
        return self._cells.text(name, row)

    def place(self, name: str, row: int) -> str:
        """Where a person finds a cell."""
        return f"{self.path}, {self.locate(row)}, column {name!r}"

    def locate(self, row: int) -> str:
        """Where a person finds a row of the file."""
        return self._cells.place(row)

    def _column(self, name: str, missing: bool) -> Float64[np.ndarray, " N"]:
        self._check_name(name)
        return self._checked(name, self._cells.numbers(name), missing)

    def _measured(self, name: str) -> Float64[np.ndarray, " N"]:
        self._check_name(name)
        values, odd = self._cells.numbers(name)
        infinite = np.isinf(values)
        reasons = {**dict.fromkeys(np.flatnonzero(infinite).tolist(), "is not finite"), **odd}
        if reasons:
            row = min(reasons)
            more = f" (as are {len(reasons) - 1} more in this column)" if len(reasons) > 1 else ""
            warn_user(f"{self._describe(name, row)} {reasons[row]}; it counts as missing{more}")
        return np.where(infinite, np.nan, values)

    def _checked(self, name: str, column: Column, missing: bool) -> Float64[np.ndarray, " N"]:
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

    def _check_name(self, name: str) -> None:
        if name not in self.names:
            hint = f"; {HINT}" if len(self.names) == 1 and isinstance(self._cells, CsvCells) else ""
            raise InputError(f"{self.path} has no column {name!r}; its columns are {', '.join(self.names)}{hint}")


def _cells(path: Path, form: CsvForm) -> Cells:
    if path.suffix.lower() != ".parquet":
        return CsvCells(path, form)
    try:
        from revarb.data.tables.parquet_cells import ParquetCells  # needs an optional library
    except ModuleNotFoundError as error:
        raise InputError(f'reading {path} needs {error.name}; pip install "revarb[parquet]"') from None
    return ParquetCells(path)
