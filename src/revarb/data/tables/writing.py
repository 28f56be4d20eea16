"""Tables to files: CSV, JSON and Parquet, by the ending of the file's name."""

import csv
import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from revarb.errors import InputError
from revarb.runtime.files import is_stream, write_atomic

Columns = Mapping[str, np.ndarray]


def check_table_file(path: str | os.PathLike[str]) -> None:
    """Refuse a file whose ending names no kind of table that can be written here; called before a long computation."""
    _find_encoder(Path(path))


def write_table(path: str | os.PathLike[str], columns: Columns) -> Path:
    """Write named columns to a file of the kind that its ending says (atomic write); CSV to a pipe or a device."""
    return write_atomic(path, _find_encoder(Path(path))(columns))


def write_csv(path: str | os.PathLike[str], columns: Columns) -> Path:
    """Write named columns to a CSV file, whatever its ending (atomic write)."""
    return write_atomic(path, encode_csv(columns))


def encode_csv(columns: Columns) -> bytes:
    """CSV with a header line and all digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(_list_rows(columns))
    return text.getvalue().encode()


def _encode_json(columns: Columns) -> bytes:
    # A list of rows, which pandas.read_json and polars.read_json take; JSON has no NaN.
    rows = [dict(zip(columns, map(_null_for_nan, row), strict=True)) for row in _list_rows(columns)]
    return json.dumps(rows, ensure_ascii=False, allow_nan=False).encode()


def _encode_parquet(columns: Columns) -> bytes:
    pa, pq = _import_pyarrow()
    buffer = io.BytesIO()
    pq.write_table(pa.table({name: pa.array(np.asarray(values).tolist()) for name, values in columns.items()}), buffer)
    return buffer.getvalue()


def _list_rows(columns: Columns) -> Any:
    return zip(*(np.asarray(values).tolist() for values in columns.values()), strict=True)


def _null_for_nan(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value


def _import_pyarrow() -> tuple[Any, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pa, pq


_ENCODERS: dict[str, Callable[[Columns], bytes]] = {
    ".csv": encode_csv,
    ".json": _encode_json,
    ".parquet": _encode_parquet,
}


def _find_encoder(path: Path) -> Callable[[Columns], bytes]:
    if is_stream(path):
        return encode_csv
    encoder = _ENCODERS.get(path.suffix.lower())
    if encoder is None:
        ending = f"the ending {path.suffix} is not known" if path.suffix else "it has no ending"
        raise InputError(f"cannot write the table {path}: {ending}; name it {', '.join(_ENCODERS)}")
    if encoder is _encode_parquet:
        _check_pyarrow(path)
    return encoder


def _check_pyarrow(path: Path) -> None:
    try:
        _import_pyarrow()
    except ModuleNotFoundError as error:
        raise InputError(f'writing {path} needs {error.name}; pip install "revarb[parquet]"') from None
