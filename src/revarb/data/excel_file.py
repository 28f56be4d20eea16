"""Excel files as rows of texts, so that they are read like CSV files: dates, units, missing values."""

import io
import zipfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from datetime import time as clock
from pathlib import Path
from typing import Any

from revarb.data.text_table import TextRow, refuse_numbers_as_names, strip_empty_rows
from revarb.errors import InputError, warn_user
from revarb.runtime.files import read_bytes

ENDINGS = (".xlsx", ".xlsm")


def read_excel_rows(path: Path, skip_rows: int = 0) -> list[TextRow]:
    """The header and the data of the first sheet, without the rows above it that are skipped and without empty columns.

    Formulas have the values that they had when the file was saved.
    """
    rows = [
        TextRow(number, [_to_text(value) for value in values])
        for number, values in enumerate(_read_values(path), start=1)
        if number > skip_rows
    ]
    rows = strip_empty_rows(path, rows)
    used = [column for column in range(len(rows[0].cells)) if any(row.cells[column].strip() for row in rows)]
    rows = [TextRow(row.line, [row.cells[column] for column in used]) for row in rows]
    refuse_numbers_as_names(path, rows[0].cells)
    return rows


def _read_values(path: Path) -> Sequence[Sequence[Any]]:
    try:
        import openpyxl
    except ModuleNotFoundError:
        raise InputError(f'reading {path} needs openpyxl; pip install "revarb[excel]", or save it as CSV') from None
    content = io.BytesIO(read_bytes(path))
    try:
        first, *others = openpyxl.load_workbook(content, data_only=True).worksheets
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, SyntaxError) as error:
        raise InputError(f"{path} is not an Excel file, or it is damaged: {error}") from None
    if others:
        warn_user(f"{path} has {len(others) + 1} sheets; the first one, {first.title!r}, is read")
    return list(first.values)


def _to_text(value: Any) -> str:
    # As a CSV file would have it. A time of day, or a duration, is a number of seconds.
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, clock):
        value = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool):
        value = int(value)
    return "" if value is None else str(value)
