"""Names of columns as C identifiers, and as text that can stand in a comment of a C file."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from revarb.errors import InputError, describe

LONGEST = 40  # characters of an identifier made from a column
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
UNIT = re.compile(r".*\S\s*\[([^\[\]]+)\]\s*")  # "level [cm]"
UNQUOTABLE = re.compile(r'["\\\x00-\x1f\x7f]|\?\?')  # what cannot stand between the quotes of #include


class CNames(NamedTuple):
    """What the identifiers of a generated program are called.

    `prefix` begins every function and type, `macro` every constant; one constant per column is its place in the
    arrays of inputs and outputs.
    """

    prefix: str
    macro: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def real(self) -> str:
        """The type of all numbers."""
        return f"{self.prefix}_real"


def name_program(name: str, input_names: Sequence[str], output_names: Sequence[str]) -> CNames:
    """The identifiers of the program `name` with these columns."""
    macro = name.upper()
    inputs, outputs = make_identifiers(input_names), make_identifiers(output_names)
    return CNames(
        name, macro, tuple(f"{macro}_IN_{each}" for each in inputs), tuple(f"{macro}_OUT_{each}" for each in outputs)
    )


def make_identifiers(names: Sequence[str]) -> tuple[str, ...]:
    """One capital identifier per name, all of them different; they are the ends of longer identifiers."""
    made: list[str] = []
    for position, name in enumerate(names):
        stem = clean_identifier(name).upper()[:LONGEST].rstrip("_") or f"COLUMN_{position + 1}"
        made.append(_make_different(stem, made))
    return tuple(made)


def clean_identifier(name: str) -> str:
    """The letters and digits of a name, without accents; everything else becomes one underscore."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_")


def check_name(name: str | None, path: Path) -> str:
    """The name of the program: the one that was given, or else one made from the file's."""
    if name is not None:
        if not IDENTIFIER.fullmatch(name):
            raise InputError(
                f"name must be an identifier of C (letters, digits and underscores, a letter first), received "
                f"{describe(name)}"
            )
        return name
    made = clean_identifier(path.stem)
    return made if IDENTIFIER.fullmatch(made) else f"model_{made}".rstrip("_")


def check_include(file: str) -> str:
    """A file name that `#include "…"` can name."""
    if UNQUOTABLE.search(file):
        raise InputError(f"the C source must include {describe(file)}, which no quotes can hold; choose another name")
    return file


def find_units(names: Sequence[str], given: Mapping[str, str] | None) -> dict[str, str]:
    """Units by column: those that were given, or else the ones in brackets at the end of a name, as in "level [cm]"."""
    units = {name: found.group(1).strip() for name in names if (found := UNIT.fullmatch(name))}
    for name, unit in (given or {}).items():
        if name not in names:
            raise InputError(f"units has the column {describe(name)}, but those of the model are {list(names)}")
        if not isinstance(unit, str) or not unit.strip():
            raise InputError(f"the unit of {describe(name)} must be a text, received {describe(unit)}")
        units[name] = unit.strip()
    return {name: unit for name, unit in units.items() if unit}


def quote_comment(text: str) -> str:
    """Text in quotes that neither ends a comment nor means anything else to a C compiler."""
    printable = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
    # No end or beginning of a comment, and no trigraph.
    return re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", r"\g<0> ", f'"{printable}"')


def _make_different(stem: str, taken: Sequence[str]) -> str:
    number, made = 1, stem
    while made in taken:
        number += 1
        made = f"{stem}_{number}"
    return made
