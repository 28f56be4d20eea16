"""Columns to a CSV file."""

import csv
import io
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from revarb.runtime.files import write_atomic


def write_table(path: str | os.PathLike[str], columns: Mapping[str, np.ndarray]) -> Path:
    """Write named columns to a CSV file with all digits (atomic write)."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True))
    return write_atomic(path, text.getvalue().encode())
