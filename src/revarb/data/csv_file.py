"""CSV files: columns of texts, converted to numbers or times when they are read.

Found from the file, unless `CsvForm` says it: encoding, compression, separator, comments, a row of units below the
header, and the decimal sign. What is ambiguous is refused, with the line and the option that reads it.
"""

import codecs
import csv
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError, check_integer, describe, warn_user
from revarb.runtime.files import read_bytes

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "space": " "} | {
    sign: sign for sign in ",;|\t "
}
LOOK_AHEAD = 20  # lines from which the separator is found
COMMENT = "#"
MISSING = frozenset({"", "nan", "na", "n/a", "#n/a", "#na", "#nv", "null", "-", "--", "?"})  # in small letters
HINT = (
    "--separator (in Python separator=) names the separator, --skip-rows (skip_rows=) leaves out lines above the header"
)
EMPTY = "is empty; it needs a header line with column names, and data below it"
NOT_A_TIME = "is not a time, neither in seconds nor as in 2026-11-15T20:30:00 (ISO 8601) or 15.11.2026 20:30:00"

_GZIP = b"\x1f\x8b"  # a text never begins with it
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[ T]+(.+))?", re.ASCII)
_EXPONENT = r"(e[+-]?\d+)?\s*"
_DECIMAL_POINT = re.compile(rf"\s*[+-]?(\d+\.\d*|\.\d+){_EXPONENT}", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(rf"\s*[+-]?(\d+,\d*|,\d+){_EXPONENT}", re.IGNORECASE)
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*")  # 1,500 is 1.5 or 1500

Value = TypeVar("Value")

Column = tuple[Float64[np.ndarray, " N"], dict[int, str]]
"""A column as numbers, NaN where a value is missing; and, for each row whose cell is something else, the reason."""


@dataclass(frozen=True)
class CsvForm:
    """How a CSV file is written, as far as a user says it; None is found from the file.

    `skip_rows` lines above the header are left out.
    """

    decimal: str | None = None
    separator: str | None = None
    skip_rows: int = 0

    def __post_init__(self):
        if self.decimal not in (None, ".", ","):
            raise InputError(f"decimal must be '.' or ',', received {describe(self.decimal)}")
        if self.separator is not None:
            if not isinstance(self.separator, str) or self.separator not in SEPARATORS:
                raise InputError(f"separator must be one of , ; | tab space, received {describe(self.separator)}")
            object.__setattr__(self, "separator", SEPARATORS[self.separator])
        object.__setattr__(self, "skip_rows", check_integer("skip_rows", self.skip_rows, least=0))


class CsvFile:
    """A CSV file with a header line: texts, converted to numbers or times when a column is read."""

    def __init__(self, path: Path, form: CsvForm):
        self._path, self._form = path, form
        header, *self._rows = _read_rows(path, form)
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
        cells = [cell for row in self._rows for cell in row.cells]
        comma = any(_DECIMAL_COMMA.fullmatch(cell) and not _THOUSANDS.fullmatch(cell) for cell in cells if "," in cell)
        return "," if comma and not any(_DECIMAL_POINT.fullmatch(cell) for cell in cells if "." in cell) else "."

    def _explain(self, cell: str) -> str:
        if self._form.decimal == "," and _DECIMAL_POINT.fullmatch(cell):
            return "is not a number with a decimal comma; leave out --decimal (in Python decimal=)"
        if _DECIMAL_COMMA.fullmatch(cell):
            return "is not a number with a decimal point; --decimal , (in Python decimal=',') reads a decimal comma"
        return f"is not a number{'; leave out commas between thousands' if _THOUSANDS.fullmatch(cell) else ''}"


class _Row(NamedTuple):
    line: int  # where it ends
    cells: list[str]


def _read_rows(path: Path, form: CsvForm) -> list[_Row]:
    # The header and the data, without comments and units; all have as many cells as the header.
    lines = _read_text(path).split("\n")
    skipped = min(form.skip_rows, len(lines))
    lines[:skipped] = [""] * skipped  # blank, so that lines keep their numbers
    used = (line for line in lines if line.strip() and not line.lstrip().startswith(COMMENT))
    first = list(islice(used, LOOK_AHEAD))
    if not first:
        raise InputError(f"{path} {EMPTY}")
    separator = form.separator or _find_separator(first)
    rows = _parse(path, _blank_comments(lines, separator), separator)
    _check_widths(path, rows)
    if _has_units(rows):
        line, units = rows.pop(1)
        warn_user(f"{path}, line {line}: {', '.join(units)} is taken as the units of the columns")
    return rows


def _read_text(path: Path) -> str:
    # UTF-8, or UTF-16 with a byte order mark, with or without gzip; lines end in "\n".
    content = read_bytes(path)
    try:
        content = gzip.decompress(content) if content.startswith(_GZIP) else content
        text = content.decode("utf-16" if content.startswith(_UTF_16) else "utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is not a gzip file, or it is damaged: {error}") from None
    except UnicodeDecodeError:
        raise InputError(
            f"{path} is not a text file in UTF-8, or in UTF-16 with a byte order mark; save it as CSV in UTF-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _find_separator(lines: Sequence[str]) -> str:
    # One that cuts all of the first lines into as many cells; a comma, which can be a decimal sign, comes after a tab
    # and a semicolon.
    for candidate in "\t;, ":
        try:
            widths = {len(cells) for cells in _split(lines, candidate)}
        except csv.Error:  # refused when the file is read
            continue
        if len(widths) == 1 and widths != {1}:
            return candidate
    return max(",;\t", key=lines[0].count)


def _blank_comments(lines: Sequence[str], separator: str) -> list[str]:
    # Above the header, too.
    begin = _find_header(lines, separator)
    header = _uncomment(lines[begin], separator)
    width = _count_cells(header, separator)
    rows = ["" if _is_comment(line.lstrip(), separator, width) else line for line in lines[begin + 1 :]]
    return [*[""] * begin, header, *rows]


def _is_comment(line: str, separator: str, width: int) -> bool:
    # A row can begin with #N/A.
    marked = line.startswith(COMMENT)
    return marked and (line[1:2] in ("", " ", "\t", COMMENT) or _count_cells(line, separator) != width)


def _find_header(lines: Sequence[str], separator: str) -> int:
    # The first line that is no comment; or, as NumPy writes it, the comment above, where that line has values.
    filled = [number for number, line in enumerate(lines) if line.strip(' \t,;|"')]
    position = next((k for k, number in enumerate(filled) if not lines[number].lstrip().startswith(COMMENT)), 0)
    if position == 0:
        return filled[0] if filled else 0
    above, first = _uncomment(lines[filled[position - 1]], separator), lines[filled[position]]
    same = _count_cells(above, separator) == _count_cells(first, separator) > 0
    is_data = same and any(map(_is_value, next(_split([first], separator))))
    return filled[position - 1] if is_data else filled[position]


def _uncomment(line: str, separator: str) -> str:
    if not line.lstrip().startswith(COMMENT):
        return line
    names = line.lstrip().lstrip(COMMENT).lstrip(" ")
    return f"{COMMENT}{names}" if names.startswith(separator) else names  # a column can be named "#"


def _count_cells(line: str, separator: str) -> int:
    try:
        return len(next(iter(_split([line], separator)), []))
    except csv.Error:  # refused when the file is read
        return 0


def _split(lines: Iterable[str], separator: str) -> Any:
    # A CSV reader of these lines; spaces, where they separate, count once.
    single = (" ".join(line.split()) for line in lines) if separator == " " else lines
    return csv.reader(single, delimiter=separator)


def _parse(path: Path, lines: Sequence[str], separator: str) -> list[_Row]:
    # Empty rows inside a record are gaps; before and after it they are left by a spreadsheet and are dropped.
    reader = _split((f"{line}\n" for line in lines), separator)
    try:
        rows = [
            _Row(reader.line_num, cells) for cells in reader if len(cells) > 1 or (cells and not cells[0].isspace())
        ]
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; save it as CSV") from None
    filled = [number for number, row in enumerate(rows) if any(cell.strip() for cell in row.cells)]
    if not filled:
        raise InputError(f"{path} {EMPTY}")
    return rows[filled[0] : filled[-1] + 1]


def _check_widths(path: Path, rows: Sequence[_Row]) -> None:
    begin, names = rows[0]
    if all(_is_value(name) for name in names):
        raise InputError(
            f"{path} begins with numbers ({', '.join(names[:3])} …): it needs a header line with column names"
        )
    for line, cells in rows:
        if len(cells) != len(names):
            raise InputError(
                f"{path}, line {line}: {len(cells)} cells, but the header (line {begin}) names {len(names)}; {HINT}"
            )


def _has_units(rows: Sequence[_Row]) -> bool:
    # The row below the header has no value, but a text in a column that has numbers.
    if len(rows) < 3 or any(_is_value(cell) for cell in rows[1].cells):
        return False
    texts = [column for column, cell in enumerate(rows[1].cells) if not _is_missing(cell)]
    return any(_try(_to_any_float, row.cells[column]) is not None for column in texts for row in rows[2:])


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def _is_value(cell: str) -> bool:
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
