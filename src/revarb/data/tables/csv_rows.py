"""The rows of a CSV file: the header and the data, without comments and without a row of units."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from revarb.data.tables.csv_form import CsvForm, find_separator, split_lines
from revarb.data.tables.csv_text import read_text
from revarb.data.tables.times import parse_time
from revarb.errors import InputError, warn_user

COMMENT = "#"
HINT = (
    "--separator (in Python separator=) names the separator, --skip-rows (skip_rows=) leaves out lines above the header"
)
MISSING = frozenset({"", "nan", "na", "n/a", "#n/a", "#na", "#nv", "null", "-", "--", "?"})  # in small letters


class Row(NamedTuple):
    """The cells of a row, and the line where it ends."""

    line: int
    cells: list[str]


def read_rows(path: Path, form: CsvForm) -> list[Row]:
    """The rows of a file, the header first; all have as many cells as the header."""
    lines = read_text(path).split("\n")
    lines = [""] * min(form.skip_rows, len(lines)) + lines[form.skip_rows :]  # blank, so that lines keep their numbers
    used = [line for line in lines if line.strip() and not line.lstrip().startswith(COMMENT)]
    if not used:
        raise InputError(f"{path} is empty; it needs a header line with column names, and data below it")
    separator = form.separator or find_separator(used)
    rows = _parse(path, _blank_comments(lines, separator), separator)
    _check_widths(path, rows)
    if not _has_units(rows):
        return rows
    warn_user(f"{path}, line {rows[1].line}: {', '.join(rows[1].cells)} is taken as the units of the columns")
    return [rows[0], *rows[2:]]


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value."""
    return cell.strip().lower() in MISSING


def _blank_comments(lines: Sequence[str], separator: str) -> list[str]:
    kept, begin = list(lines), _find_header(lines, separator)
    kept[:begin] = [""] * begin
    kept[begin] = _uncomment(kept[begin], separator)
    width = _count_cells(kept[begin], separator)
    for number in range(begin + 1, len(kept)):
        if _is_comment(kept[number].lstrip(), width, separator):
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
    is_data = same and any(map(_is_value, next(split_lines([first], separator))))
    return filled[position - 1] if is_data else filled[position]


def _uncomment(line: str, separator: str) -> str:
    if not line.lstrip().startswith(COMMENT):
        return line
    names = line.lstrip().lstrip(COMMENT).lstrip(" ")
    return f"{COMMENT}{names}" if names.startswith(separator) else names  # a column can be named "#"


def _is_comment(line: str, width: int, separator: str) -> bool:
    # A line that begins with #N/A is none.
    if not line.startswith(COMMENT):
        return False
    return line[1:2] in ("", " ", "\t", COMMENT) or _count_cells(line, separator) != width


def _count_cells(line: str, separator: str) -> int:
    try:
        return len(next(iter(split_lines([line], separator)), []))
    except csv.Error:  # refused when the file is read
        return 0


def _parse(path: Path, lines: Sequence[str], separator: str) -> list[Row]:
    reader = split_lines([f"{line}\n" for line in lines], separator)
    try:
        rows = [Row(reader.line_num, cells) for cells in reader if not _is_blank_line(cells)]
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; save it as CSV") from None
    # Empty rows inside a record are gaps; before and after it they are left by a spreadsheet and are dropped.
    filled = [number for number, row in enumerate(rows) if any(cell.strip() for cell in row.cells)]
    if not filled:
        raise InputError(f"{path} is empty; it needs a header line with column names, and data below it")
    return rows[filled[0] : filled[-1] + 1]


def _is_blank_line(cells: list[str]) -> bool:
    return not cells or (len(cells) == 1 and cells[0].isspace())


def _check_widths(path: Path, rows: Sequence[Row]) -> None:
    names = rows[0].cells
    if all(_is_value(name) for name in names):
        raise InputError(
            f"{path} begins with numbers ({', '.join(names[:3])} …): it needs a header line with column names"
        )
    for line, cells in rows:
        if len(cells) != len(names):
            raise InputError(
                f"{path}, line {line}: {len(cells)} cells, but the header (line {rows[0].line}) names {len(names)}; "
                f"{HINT}"
            )


def _has_units(rows: Sequence[Row]) -> bool:
    # The row below the header has no value, but a text in a column that has numbers.
    if len(rows) < 3 or any(_is_value(cell) for cell in rows[1].cells):
        return False
    texts = [column for column, cell in enumerate(rows[1].cells) if not is_missing(cell)]
    return any(_is_number(row.cells[column]) for column in texts for row in rows[2:])


def _is_value(cell: str) -> bool:
    return _is_number(cell) or _is_time(cell)


def _is_number(cell: str) -> bool:
    # With a decimal point or a decimal comma.
    try:
        float(cell.replace(",", ".", 1))
    except ValueError:
        return False
    return True


def _is_time(cell: str) -> bool:
    try:
        parse_time(cell)
    except ValueError:
        return False
    return True
