"""Tables in CSV files: named numeric columns in, named numeric columns out."""

import csv
import io
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from revarb.errors import InputError
from revarb.files import write_whole


class Table:
    """The cells of a CSV file with a header line; a column becomes numbers when it is asked for."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        rows = _rows(self.path)
        self.names = tuple(name.strip() for name in rows[0][1])
        self._rows = rows[1:]
        _check_header(self.path, self.names)
        if not self._rows:
            raise InputError(f"{self.path} has a header line but no data below it")
        for line, cells in self._rows:
            if len(cells) != len(self.names):
                raise InputError(
                    f"{self.path}, line {line}: {len(cells)} cells, but the header names {len(self.names)}"
                )

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def columns(self, names: Sequence[str]) -> np.ndarray:
        """The named columns as a matrix [rows, columns]."""
        values = [self._column(name) for name in names]
        return np.stack(values, axis=1) if values else np.empty((len(self._rows), 0))

    def _column(self, name: str) -> np.ndarray:
        if name not in self.names:
            raise InputError(f"{self.path} has no column {name!r}; its columns are {', '.join(self.names)}")
        position = self.names.index(name)
        return np.array([self._number(line, name, cells[position]) for line, cells in self._rows])

    def _number(self, line: int, name: str, cell: str) -> float:
        try:
            value = float(cell.replace("_", "?"))  # Python would read 1_0 as ten
        except ValueError:
            raise InputError(f"{self.path}, line {line}, column {name!r}: {cell!r} is not a number") from None
        if not np.isfinite(value):
            raise InputError(f"{self.path}, line {line}, column {name!r}: {cell!r} is not finite; remove or fill it")
        return value


def write_table(path: str | os.PathLike[str], columns: Mapping[str, np.ndarray]) -> Path:
    """Write named columns to a CSV file, whole or not at all, with all digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True))
    return write_whole(path, text.getvalue().encode())


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file in UTF-8; save it as CSV") from None
    reader = csv.reader(io.StringIO(text), delimiter=_delimiter(text))
    try:
        rows = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}; save it as CSV") from None
    if not rows:
        raise InputError(f"{path} is empty; it needs a header line with column names, and data below it")
    return rows


def _delimiter(text: str) -> str:
    header = text.lstrip().split("\n", 1)[0]
    return max(",;\t", key=header.count)


def _check_header(path: Path, names: Sequence[str]) -> None:
    if all(_is_number(name) for name in names):
        raise InputError(
            f"{path} begins with numbers ({', '.join(names[:3])} …): it needs a header line with column names"
        )
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        raise InputError(f"{path} has two columns named {doubled[0]!r}; rename one")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
