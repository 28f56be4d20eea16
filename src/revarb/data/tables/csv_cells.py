"""Cells of a CSV file: texts, converted to numbers or times when they are read."""

import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from revarb.data.tables.csv_form import CsvForm
from revarb.data.tables.csv_rows import is_missing, read_rows
from revarb.data.tables.table_cells import Column
from revarb.data.tables.times import parse_time
from revarb.errors import InputError

_EXPONENT = r"(e[+-]?\d+)?\s*"
_DECIMAL_POINT = re.compile(rf"\s*[+-]?(\d+\.\d*|\.\d+){_EXPONENT}", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(rf"\s*[+-]?(\d+,\d*|,\d+){_EXPONENT}", re.IGNORECASE)
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*")  # 1,500 is 1.5 or 1500

Value = TypeVar("Value")


class CsvCells:
    """A CSV file with a header line."""

    def __init__(self, path: Path, form: CsvForm):
        self._path, self._form = path, form
        header, *self._rows = read_rows(path, form)
        self.names = tuple(name.strip() for name in header.cells)

    def __len__(self) -> int:
        return len(self._rows)

    def place(self, row: int) -> str:
        """The line of a row."""
        return f"line {self._rows[row].line}"

    def text(self, name: str, row: int) -> str:
        """A cell as it stands in the file."""
        return self._rows[row].cells[self.names.index(name)]

    def numbers(self, name: str) -> Column:
        """A column as numbers, NaN where a cell is empty or says so."""
        values, odd = self._converted(name, self._number, np.nan)
        return Column(np.array(values), {row: self._explain(self.text(name, row)) for row in odd})

    def seconds(self, name: str) -> Column:
        """A column of numbers as they are, or of points in time as seconds after the first."""
        if self._is_number(self.text(name, 0)):
            return self.numbers(name)
        times, odd = self._converted(name, parse_time, None)
        why = "is not a time, neither in seconds nor as in 2026-11-15T20:30:00 (ISO 8601) or 15.11.2026 20:30:00"
        first = next((time for time in times if time is not None), None)
        try:
            passed = [np.nan if time is None or first is None else (time - first).total_seconds() for time in times]
        except TypeError:
            raise InputError(
                f"{self._path}, column {name!r}: some times have a time zone and some have none; write them alike"
            ) from None
        return Column(np.array(passed), dict.fromkeys(odd, why))

    def _converted(
        self, name: str, convert: Callable[[str], Value], otherwise: Value | None
    ) -> tuple[list[Value | None], list[int]]:
        # The values, and the rows of cells that cannot be converted.
        position, values, odd = self.names.index(name), [], []
        for row, (_, cells) in enumerate(self._rows):
            try:
                values.append(convert(cells[position]))
            except ValueError:
                values.append(otherwise)
                odd.append(row)
        return values, odd

    def _number(self, cell: str) -> float:
        if "_" in cell:
            raise ValueError  # Python would read 1_0 as ten
        if is_missing(cell):
            return np.nan
        return float(self._with_point(cell))

    def _with_point(self, cell: str) -> str:
        if "," not in cell and self._form.decimal != ",":
            return cell  # the decimal sign does not matter
        if self._decimal == ".":
            return cell
        if "." in cell:
            raise ValueError  # a decimal comma with points between thousands
        return cell.replace(",", ".")

    @cached_property
    def _decimal(self) -> str:
        # A comma, where it must be one: some cell has it where no thousands end, and none has a decimal point.
        if self._form.decimal is not None:
            return self._form.decimal
        cells = [cell for row in self._rows for cell in row.cells]
        comma = any(_DECIMAL_COMMA.fullmatch(cell) and not _THOUSANDS.fullmatch(cell) for cell in cells)
        return "," if comma and not any(map(_DECIMAL_POINT.fullmatch, cells)) else "."

    def _explain(self, cell: str) -> str:
        if self._form.decimal == "," and _DECIMAL_POINT.fullmatch(cell):
            return "is not a number with a decimal comma; leave out --decimal (in Python decimal=)"
        if _DECIMAL_COMMA.fullmatch(cell):
            return "is not a number with a decimal point; --decimal , (in Python decimal=',') reads a decimal comma"
        return (
            "is not a number; leave out commas between thousands" if _THOUSANDS.fullmatch(cell) else "is not a number"
        )

    def _is_number(self, cell: str) -> bool:
        try:
            float(self._with_point(cell))
        except ValueError:
            return False
        return True
