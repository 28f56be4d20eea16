"""A table in a file: named columns, checked when they are read."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float64

from revarb.data.tables.csv_cells import CsvCells
from revarb.errors import InputError


@runtime_checkable
class Cells(Protocol):
    """Access to the cells of one kind of file. Rows are counted from 0, NaN is a missing value."""

    names: tuple[str, ...]

    def __len__(self) -> int: ...

    def place(self, row: int) -> str:
        """Where a person finds a row in the file."""
        ...

    def text(self, name: str, row: int) -> str:
        """A cell as it can be shown."""
        ...

    def numbers(self, name: str) -> Float64[np.ndarray, " N"]:
        """A column as numbers; what is no number is refused."""
        ...

    def seconds(self, name: str) -> Float64[np.ndarray, " N"]:
        """A column of numbers as they are, or of points in time as seconds after the first."""
        ...


class Table:
    """Named columns of a file: Parquet by its ending, or else CSV with a header line.

    A column is converted to numbers when it is read; other columns may hold anything.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self._cells = _cells(self.path)
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

    def seconds(self, name: str) -> Float64[np.ndarray, " N"]:
        """A column of times, without gaps: numbers as they are, points in time as seconds after the first."""
        self._check_name(name)
        return self._checked(name, self._cells.seconds(name), missing=False)

    def cell(self, name: str, row: int) -> str:
        """A cell as it can be shown."""
        return self._cells.text(name, row)

    def place(self, name: str, row: int) -> str:
        """Where a person finds a cell."""
        return f"{self.path}, {self._cells.place(row)}, column {name!r}"

    def _column(self, name: str, missing: bool) -> Float64[np.ndarray, " N"]:
        self._check_name(name)
        return self._checked(name, self._cells.numbers(name), missing)

    def _checked(self, name: str, values: Float64[np.ndarray, " N"], missing: bool) -> Float64[np.ndarray, " N"]:
        self._refuse(name, np.isinf(values), "is not finite; remove or fill it")
        if not missing:
            self._refuse(name, np.isnan(values), "is no value, and only outputs may be missing; fill it")
        return values

    def _refuse(self, name: str, wrong: Bool[np.ndarray, " N"], why: str) -> None:
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(f"{self.place(name, row)}: {self.cell(name, row)!r} {why}")

    def _check_name(self, name: str) -> None:
        if name not in self.names:
            raise InputError(f"{self.path} has no column {name!r}; its columns are {', '.join(self.names)}")


def _cells(path: Path) -> Cells:
    if path.suffix.lower() != ".parquet":
        return CsvCells(path)
    try:
        from revarb.data.tables.parquet_cells import ParquetCells  # needs an optional library
    except ModuleNotFoundError as error:
        raise InputError(f'reading {path} needs {error.name}; pip install "revarb[parquet]"') from None
    return ParquetCells(path)
