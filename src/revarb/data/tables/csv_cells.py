"""Cells of a CSV file: texts, converted to numbers or times when they are read."""

import csv
import io
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError

MISSING = frozenset({"", "nan", "na", "null"})  # in small letters


Value = TypeVar("Value")


class CsvCells:
    """A CSV file with a header line."""

    def __init__(self, path: Path):
        self._path = path
        rows = _rows(path)
        self.names = tuple(name.strip() for name in rows[0][1])
        self._rows = rows[1:]
        if all(_is_number(name) for name in self.names):
            raise InputError(
                f"{path} begins with numbers ({', '.join(self.names[:3])} …): it needs a header line with column names"
            )
        for line, cells in self._rows:
            if len(cells) != len(self.names):
                raise InputError(f"{path}, line {line}: {len(cells)} cells, but the header names {len(self.names)}")

    def __len__(self) -> int:
        return len(self._rows)

    def place(self, row: int) -> str:
        """The line of a row."""
        return f"line {self._rows[row][0]}"

    def text(self, name: str, row: int) -> str:
        """A cell as it stands in the file."""
        return self._rows[row][1][self.names.index(name)]

    def numbers(self, name: str) -> Float64[np.ndarray, " N"]:
        """A column as numbers, NaN where a cell is empty or says so."""
        return np.array(self._converted(name, _number, "a number"))

    def seconds(self, name: str) -> Float64[np.ndarray, " N"]:
        """A column of numbers as they are, or of points in time (ISO 8601) as seconds after the first."""
        if _is_number(self.text(name, 0)):
            return self.numbers(name)
        times = self._converted(
            name, _point_in_time, "a time, neither in seconds nor in ISO 8601 (2026-11-15T20:30:00)"
        )
        try:
            return np.array([(time - times[0]).total_seconds() for time in times])
        except TypeError:
            raise InputError(
                f"{self._path}, column {name!r}: some times have a time zone and some have none; write them alike"
            ) from None

    def _converted(self, name: str, convert: Callable[[str], Value], what: str) -> list[Value]:
        position, values = self.names.index(name), []
        for line, cells in self._rows:
            try:
                values.append(convert(cells[position]))
            except ValueError:
                where = f"{self._path}, line {line}, column {name!r}"
                raise InputError(f"{where}: {cells[position]!r} is not {what}") from None
        return values


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file in UTF-8; save it as CSV") from None
    reader = csv.reader(io.StringIO(text), delimiter=_delimiter(text))
    try:
        rows = [(reader.line_num, cells) for cells in reader if not _is_blank_line(cells)]
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; save it as CSV") from None
    # Empty rows inside a record are gaps; before and after it they are left by a spreadsheet and are dropped.
    filled = [number for number, (_, cells) in enumerate(rows) if any(cell.strip() for cell in cells)]
    if not filled:
        raise InputError(f"{path} is empty; it needs a header line with column names, and data below it")
    return rows[filled[0] : filled[-1] + 1]


def _is_blank_line(cells: list[str]) -> bool:
    return not cells or (len(cells) == 1 and cells[0].isspace())


def _delimiter(text: str) -> str:
    header = text.lstrip().split("\n", 1)[0]
    return max(",;\t", key=header.count)


def _number(cell: str) -> float:
    if "_" in cell:
        raise ValueError  # Python would read 1_0 as ten
    try:
        return float(cell)
    except ValueError:
        if cell.strip().lower() in MISSING:
            return np.nan
        raise


def _point_in_time(cell: str) -> datetime:
    return datetime.fromisoformat(cell.strip())


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
