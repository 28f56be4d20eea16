"""How CSV files are written: decimal sign, separator, lines above the header."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from revarb.errors import InputError, check_integer, describe

DECIMALS = (".", ",")
SEPARATORS = {
    ",": ",", ";": ";", "|": "|", "\t": "\t", "\\t": "\t", " ": " ",
    "comma": ",", "semicolon": ";", "tab": "\t", "space": " ",
}  # fmt: skip
LOOK_AHEAD = 20  # lines from which the separator is found


@dataclass(frozen=True)
class CsvForm:
    """How a CSV file is written, as far as a user says it; None is found from the file.

    `skip_rows` lines above the header are left out.
    """

    decimal: str | None = None
    separator: str | None = None
    skip_rows: int = 0

    def __post_init__(self):
        if self.decimal is not None and self.decimal not in DECIMALS:
            raise InputError(f"decimal must be '.' or ',', received {describe(self.decimal)}")
        if self.separator is not None:
            object.__setattr__(self, "separator", _check_separator(self.separator))
        object.__setattr__(self, "skip_rows", check_integer("skip_rows", self.skip_rows, least=0))


def split_lines(lines: Sequence[str], separator: str) -> Any:
    """A CSV reader of these lines; spaces, where they separate, count once."""
    single = [" ".join(line.split()) for line in lines] if separator == " " else lines
    return csv.reader(single, delimiter=separator)


def find_separator(lines: Sequence[str]) -> str:
    """The separator of these lines, none of them blank: one that cuts all of the first lines into as many cells.

    A comma, which can be a decimal sign, comes after a tab and a semicolon.
    """
    first = lines[:LOOK_AHEAD]
    for candidate in "\t;, ":
        try:
            widths = {len(cells) for cells in split_lines(first, candidate)}
        except csv.Error:  # refused when the file is read
            continue
        if len(widths) == 1 and widths != {1}:
            return candidate
    return max(",;\t", key=first[0].count)


def _check_separator(separator: object) -> str:
    if not isinstance(separator, str) or separator not in SEPARATORS:
        raise InputError(f"separator must be one of , ; | tab space, received {describe(separator)}")
    return SEPARATORS[separator]
