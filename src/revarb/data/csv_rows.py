"""The rows of a CSV file: the header and the data, without comments and without a row of units.

Found from the file, unless `CsvForm` says it: encoding, compression, separator, comments, a row of units below the
header.
"""

import codecs
import csv
import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from revarb.errors import InputError, check_integer, describe, warn_user
from revarb.runtime.files import read_bytes

SEPARATORS = {
    ",": ",", ";": ";", "|": "|", "\t": "\t", "\\t": "\t", " ": " ",
    "comma": ",", "semicolon": ";", "tab": "\t", "space": " ",
}  # fmt: skip
LOOK_AHEAD = 20  # lines from which the separator is found
COMMENT = "#"
MISSING = frozenset({"", "nan", "na", "n/a", "#n/a", "#na", "#nv", "null", "-", "--", "?"})  # in small letters
HINT = (
    "--separator (in Python separator=) names the separator, --skip-rows (skip_rows=) leaves out lines above the header"
)

_GZIP = b"\x1f\x8b"  # a text never begins with it
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[ T]+(.+))?", re.ASCII)
_SHORT_HOUR = re.compile(r"\d:")


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


def read_rows(path: Path, form: CsvForm) -> tuple[list[int], list[list[str]]]:
    """The lines where rows end, and their cells, the header first; all have as many cells as the header."""
    lines = _read_text(path).split("\n")
    lines = [""] * min(form.skip_rows, len(lines)) + lines[form.skip_rows :]  # blank, so that lines keep their numbers
    used = (line for line in lines if line.strip() and not line.lstrip().startswith(COMMENT))
    first = [line for line, _ in zip(used, range(LOOK_AHEAD), strict=False)]
    if not first:
        raise _refuse_empty(path)
    separator = form.separator or _find_separator(first)
    numbers, rows = _parse(path, _blank_comments(lines, separator), separator)
    _check_widths(path, numbers, rows)
    if _has_units(rows):
        warn_user(f"{path}, line {numbers[1]}: {', '.join(rows[1])} is taken as the units of the columns")
        del numbers[1], rows[1]
    return numbers, rows


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
    kept, begin = list(lines), _find_header(lines, separator)
    kept[:begin] = [""] * begin
    kept[begin] = _uncomment(kept[begin], separator)
    width = _count_cells(kept[begin], separator)
    for number in range(begin + 1, len(kept)):
        line = kept[number].lstrip()
        if line.startswith(COMMENT) and (
            line[1:2] in ("", " ", "\t", COMMENT) or _count_cells(line, separator) != width  # a row can begin with #N/A
        ):
            kept[number] = ""
    return kept


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


def _parse(path: Path, lines: Sequence[str], separator: str) -> tuple[list[int], list[list[str]]]:
    reader = _split((f"{line}\n" for line in lines), separator)
    numbers, rows = [], []
    try:
        for cells in reader:
            if len(cells) > 1 or (cells and not cells[0].isspace()):
                numbers.append(reader.line_num)
                rows.append(cells)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; save it as CSV") from None
    # Empty rows inside a record are gaps; before and after it they are left by a spreadsheet and are dropped.
    first = next((row for row in range(len(rows)) if _is_filled(rows[row])), None)
    if first is None:
        raise _refuse_empty(path)
    last = next(row for row in reversed(range(len(rows))) if _is_filled(rows[row]))
    return numbers[first : last + 1], rows[first : last + 1]


def _check_widths(path: Path, numbers: Sequence[int], rows: Sequence[list[str]]) -> None:
    names = rows[0]
    if all(_is_value(name) for name in names):
        raise InputError(
            f"{path} begins with numbers ({', '.join(names[:3])} …): it needs a header line with column names"
        )
    for line, cells in zip(numbers, rows, strict=True):
        if len(cells) != len(names):
            raise InputError(
                f"{path}, line {line}: {len(cells)} cells, but the header (line {numbers[0]}) names {len(names)}; "
                f"{HINT}"
            )


def _has_units(rows: Sequence[list[str]]) -> bool:
    # The row below the header has no value, but a text in a column that has numbers.
    if len(rows) < 3 or any(_is_value(cell) for cell in rows[1]):
        return False
    texts = [column for column, cell in enumerate(rows[1]) if not is_missing(cell)]
    return any(can_convert(_to_any_float, row[column]) for column in texts for row in rows[2:])


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value."""
    return cell.strip().lower() in MISSING


def _is_filled(cells: Sequence[str]) -> bool:
    return any(cell.strip() for cell in cells)


def _is_value(cell: str) -> bool:
    return can_convert(_to_any_float, cell) or can_convert(parse_time, cell)


def _to_any_float(cell: str) -> float:
    return float(cell.replace(",", ".", 1))  # with a decimal point or a decimal comma


def can_convert(convert: Callable[[str], object], cell: str) -> bool:
    """Whether a cell can be converted to a number, or to a time."""
    try:
        convert(cell)
    except ValueError:
        return False
    return True


def _refuse_empty(path: Path) -> InputError:
    return InputError(f"{path} is empty; it needs a header line with column names, and data below it")


def parse_time(text: str) -> datetime:
    """A time in ISO 8601, or as dd.mm.yyyy with or without a time of day; ValueError for anything else.

    With slashes day and month cannot be told apart.
    """
    written = text.strip()
    found = _DAY_FIRST.fullmatch(written)
    if found is None:
        return datetime.fromisoformat(written)
    day, month, year, clock = found.groups(default="0:00")
    clock = f"0{clock}" if _SHORT_HOUR.match(clock) else clock
    return datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}T{clock}")
