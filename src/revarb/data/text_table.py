"""Columns of texts, as CSV files and spreadsheets have them, converted to numbers or times when they are read."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float64, Int

from revarb.errors import InputError, warn_user

MISSING = frozenset({"", "nan", "na", "n/a", "#n/a", "#na", "#nv", "null", "-", "--", "?"})  # in small letters
EMPTY = "is empty; it needs a header line with column names, and data below it"
NOT_A_TIME = "is not a time, neither in seconds nor as in 2026-11-15T20:30:00 (ISO 8601) or 15.11.2026 20:30:00"

_DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[ T]+(.+))?", re.ASCII)
_EXPONENT = r"(e[+-]?\d+)?\s*"
_DECIMAL_POINT = re.compile(rf"\s*[+-]?(\d+\.\d*|\.\d+){_EXPONENT}", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(rf"\s*[+-]?(\d+,\d*|,\d+){_EXPONENT}", re.IGNORECASE)
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*")  # 1,500 is 1.5 or 1500

Value = TypeVar("Value")

Column = tuple[Float64[np.ndarray, " N"], dict[int, str]]
"""A column as numbers, NaN where a value is missing; and, for each row whose cell is something else, the reason."""


class TextRow(NamedTuple):
    """The cells of a row, and the line of the file, counted from 1, where it ends."""

    line: int
    cells: list[str]


class TextTable:
    """Rows of texts below a header; `decimal` is the decimal sign, None to find it, and `unit` what a row is called."""

    def __init__(self, path: Path, rows: Sequence[TextRow], decimal: str | None, unit: str):
        header, *self._rows = _leave_out_units(path, rows, unit)
        self._path, self._given_decimal, self._unit = path, decimal, unit
        self.names = tuple(name.strip() for name in header.cells)

    def __len__(self) -> int:
        return len(self._rows)

    def place(self, row: int) -> str:
        """Where a row is in the file."""
        return f"{self._unit} {self._rows[row].line}"

    def text(self, name: str, row: int) -> str:
        """A cell as it stands in the file."""
        return self._rows[row].cells[self.names.index(name)]

    def numbers(self, name: str) -> Column:
        """A column as numbers."""
        cells = self._cells(name)
        values = [_try(self._to_float, cell) for cell in cells]
        odd = [row for row, value in enumerate(values) if value is None and not _is_missing(cells[row])]
        return np.array(values, dtype=np.float64), {row: self._explain(cells[row]) for row in odd}

    def seconds(self, name: str) -> Column:
        """A column of numbers as they are, or of points in time as seconds after the first."""
        cells = self._cells(name)
        if _try(self._to_float, cells[0]) is not None:
            return self.numbers(name)
        times = [_try(_parse_time, cell) for cell in cells]
        first = next((time for time in times if time is not None), datetime.min)
        try:
            passed = [np.nan if time is None else (time - first).total_seconds() for time in times]
        except TypeError:
            raise InputError(
                f"{self._path}, column {name!r}: some times have a time zone and some have none; write them alike"
            ) from None
        return np.array(passed), {row: NOT_A_TIME for row, time in enumerate(times) if time is None}

    def _cells(self, name: str) -> list[str]:
        position = self.names.index(name)
        return [row.cells[position] for row in self._rows]

    def _to_float(self, cell: str) -> float:
        if "_" in cell:
            raise ValueError  # Python would read 1_0 as ten
        if ("," in cell or self._given_decimal == ",") and self._decimal == ",":
            if "." in cell:
                raise ValueError  # a decimal comma with points between thousands
            return float(cell.replace(",", "."))
        return float(cell)

    @cached_property
    def _decimal(self) -> str:
        # A comma, where it must be one: some cell has it where no thousands end, and none has a decimal point.
        if self._given_decimal is not None:
            return self._given_decimal
        cells = [cell for row in self._rows for cell in row.cells]
        comma = any(_DECIMAL_COMMA.fullmatch(cell) and not _THOUSANDS.fullmatch(cell) for cell in cells if "," in cell)
        return "," if comma and not any(_DECIMAL_POINT.fullmatch(cell) for cell in cells if "." in cell) else "."

    def _explain(self, cell: str) -> str:
        if self._given_decimal == "," and _DECIMAL_POINT.fullmatch(cell):
            return "is not a number with a decimal comma; leave out --decimal (in Python decimal=)"
        if _DECIMAL_COMMA.fullmatch(cell):
            return "is not a number with a decimal point; --decimal , (in Python decimal=',') reads a decimal comma"
        return f"is not a number{'; leave out commas between thousands' if _THOUSANDS.fullmatch(cell) else ''}"

    def reorder(self, order: Int[np.ndarray, " N"]) -> None:
        """Put the rows into another order."""
        self._rows = [self._rows[row] for row in order]


def strip_empty_rows(path: Path, rows: Sequence[TextRow]) -> list[TextRow]:
    """The rows without empty ones before and after them, which a spreadsheet leaves; inside a record they are gaps."""
    filled = [number for number, row in enumerate(rows) if any(cell.strip() for cell in row.cells)]
    if not filled:
        raise InputError(f"{path} {EMPTY}")
    return list(rows[filled[0] : filled[-1] + 1])


def refuse_numbers_as_names(path: Path, names: Sequence[str]) -> None:
    """Refuse a header that has numbers only: the first row of a file without one."""
    if all(is_value(name) for name in names):
        raise InputError(
            f"{path} begins with numbers ({', '.join(names[:3])} …): it needs a header line with column names"
        )


def _leave_out_units(path: Path, rows: Sequence[TextRow], unit: str) -> list[TextRow]:
    if not _has_units(rows):
        return list(rows)
    header, units, *data = rows
    warn_user(f"{path}, {unit} {units.line}: {', '.join(units.cells)} is taken as the units of the columns")
    return [header, *data]


def _has_units(rows: Sequence[TextRow]) -> bool:
    # The row below the header has no value, but a text in a column that has numbers.
    if len(rows) < 3 or any(is_value(cell) for cell in rows[1].cells):
        return False
    texts = [column for column, cell in enumerate(rows[1].cells) if not _is_missing(cell)]
    return any(_try(_to_any_float, row.cells[column]) is not None for column in texts for row in rows[2:])


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def is_value(cell: str) -> bool:
    """Whether a cell is a number or a time."""
    return _try(_to_any_float, cell) is not None or _try(_parse_time, cell) is not None


def _to_any_float(cell: str) -> float:
    return float(cell.replace(",", ".", 1))  # with a decimal point or a decimal comma


def _try(convert: Callable[[str], Value], cell: str) -> Value | None:
    # None for a cell that cannot be converted.
    try:
        return convert(cell)
    except ValueError:
        return None


def _parse_time(text: str) -> datetime:
    # In ISO 8601, or as dd.mm.yyyy with or without a time of day. With slashes day and month cannot be told apart.
    found = _DAY_FIRST.fullmatch(text.strip())
    if found is None:
        return datetime.fromisoformat(text.strip())
    day, month, year, clock = found.groups(default="0:00")
    return datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}T{'0' if clock[1:2] == ':' else ''}{clock}")
