"""CSV files: columns of texts, converted to numbers or times when they are read.

The decimal sign is found from the file, unless `CsvForm` says it. What is ambiguous is refused, with the line and the
option that reads it.
"""

import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Float64

from revarb.data.csv_rows import CsvForm, can_convert, is_missing, parse_time, read_rows
from revarb.errors import InputError

NOT_A_TIME = "is not a time, neither in seconds nor as in 2026-11-15T20:30:00 (ISO 8601) or 15.11.2026 20:30:00"

_EXPONENT = r"(e[+-]?\d+)?\s*"
_DECIMAL_POINT = re.compile(rf"\s*[+-]?(\d+\.\d*|\.\d+){_EXPONENT}", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(rf"\s*[+-]?(\d+,\d*|,\d+){_EXPONENT}", re.IGNORECASE)
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*")  # 1,500 is 1.5 or 1500

Value = TypeVar("Value")

Column = tuple[Float64[np.ndarray, " N"], dict[int, str]]
"""A column as numbers, NaN where a value is missing; and, for each row whose cell is something else, the reason."""


class CsvFile:
    """A CSV file with a header line: texts, converted to numbers or times when a column is read."""

    def __init__(self, path: Path, form: CsvForm):
        self._path, self._form = path, form
        lines, rows = read_rows(path, form)
        self.names = tuple(name.strip() for name in rows[0])
        self._lines, self._rows = lines[1:], rows[1:]

    def __len__(self) -> int:
        return len(self._rows)

    def place(self, row: int) -> str:
        """The line of a row."""
        return f"line {self._lines[row]}"

    def text(self, name: str, row: int) -> str:
        """A cell as it stands in the file."""
        return self._rows[row][self.names.index(name)]

    def numbers(self, name: str) -> Column:
        """A column as numbers."""
        values, odd = self._convert(name, self._parse_number, np.nan)
        return np.array(values), {row: self._explain(self.text(name, row)) for row in odd}

    def seconds(self, name: str) -> Column:
        """A column of numbers as they are, or of points in time as seconds after the first."""
        if can_convert(self._to_float, self.text(name, 0)):
            return self.numbers(name)
        times, odd = self._convert(name, parse_time, None)
        first = next((time for time in times if time is not None), None)
        try:
            passed = [np.nan if time is None or first is None else (time - first).total_seconds() for time in times]
        except TypeError:
            raise InputError(
                f"{self._path}, column {name!r}: some times have a time zone and some have none; write them alike"
            ) from None
        return np.array(passed), dict.fromkeys(odd, NOT_A_TIME)

    def _convert(
        self, name: str, convert: Callable[[str], Value], otherwise: Value | None
    ) -> tuple[list[Value | None], list[int]]:
        # The values, and the rows of cells that cannot be converted.
        position, values, odd = self.names.index(name), [], []
        for row, cells in enumerate(self._rows):
            try:
                values.append(convert(cells[position]))
            except ValueError:
                values.append(otherwise)
                odd.append(row)
        return values, odd

    def _parse_number(self, cell: str) -> float:
        try:
            return self._to_float(cell)
        except ValueError:
            if is_missing(cell):
                return np.nan
            raise

    def _to_float(self, cell: str) -> float:
        if "_" in cell:
            raise ValueError  # Python would read 1_0 as ten
        if ("," in cell or self._form.decimal == ",") and self._decimal == ",":
            if "." in cell:
                raise ValueError  # a decimal comma with points between thousands
            return float(cell.replace(",", "."))
        return float(cell)

    @cached_property
    def _decimal(self) -> str:
        # A comma, where it must be one: some cell has it where no thousands end, and none has a decimal point.
        if self._form.decimal is not None:
            return self._form.decimal
        cells = [cell for row in self._rows for cell in row]
        comma = any(_DECIMAL_COMMA.fullmatch(cell) and not _THOUSANDS.fullmatch(cell) for cell in cells if "," in cell)
        return "," if comma and not any(_DECIMAL_POINT.fullmatch(cell) for cell in cells if "." in cell) else "."

    def _explain(self, cell: str) -> str:
        if self._form.decimal == "," and _DECIMAL_POINT.fullmatch(cell):
            return "is not a number with a decimal comma; leave out --decimal (in Python decimal=)"
        if _DECIMAL_COMMA.fullmatch(cell):
            return "is not a number with a decimal point; --decimal , (in Python decimal=',') reads a decimal comma"
        return f"is not a number{'; leave out commas between thousands' if _THOUSANDS.fullmatch(cell) else ''}"
