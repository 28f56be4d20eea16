"""CSV files as rows of texts.

Found from the file, unless `CsvForm` says it: encoding, compression, separator and comments. What is ambiguous is
refused, with the line and the option that reads it.
"""

import codecs
import csv
import gzip
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from revarb.data.text_table import EMPTY, TextRow, is_value, refuse_numbers_as_names, strip_empty_rows
from revarb.errors import InputError, check_integer, describe
from revarb.runtime.files import read_bytes

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "space": " "} | {
    sign: sign for sign in ",;|\t "
}
LOOK_AHEAD = 20  # lines from which the separator is found
COMMENT = "#"
HINT = (
    "--separator (in Python separator=) names the separator, --skip-rows (skip_rows=) leaves out lines above the header"
)

_GZIP = b"\x1f\x8b"  # a text never begins with it
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


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


def read_csv_rows(path: Path, form: CsvForm) -> list[TextRow]:
    """The header and the data, without comments; all have as many cells as the header."""
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
    is_data = same and any(map(is_value, next(_split([first], separator))))
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


def _parse(path: Path, lines: Sequence[str], separator: str) -> list[TextRow]:
    reader = _split((f"{line}\n" for line in lines), separator)
    try:
        rows = [
            TextRow(reader.line_num, cells) for cells in reader if len(cells) > 1 or (cells and not cells[0].isspace())
        ]
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; save it as CSV") from None
    return strip_empty_rows(path, rows)


def _check_widths(path: Path, rows: Sequence[TextRow]) -> None:
    begin, names = rows[0]
    refuse_numbers_as_names(path, names)
    for line, cells in rows:
        if len(cells) != len(names):
            raise InputError(
                f"{path}, line {line}: {len(cells)} cells, but the header (line {begin}) names {len(names)}; {HINT}"
            )
