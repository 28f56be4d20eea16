"""Parquet files: typed columns, nulls where there is no value. Needs pyarrow, which is optional."""

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from revarb.data.csv_file import Column
from revarb.errors import InputError
from revarb.runtime.files import read_bytes

TICKS_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)


class ParquetFile:
    """A Parquet file."""

    def __init__(self, path: Path):
        self._path, content = path, read_bytes(path)
        try:
            self._table = pq.ParquetFile(pa.BufferReader(content)).read()
            self.names = tuple(self._table.column_names)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is not a Parquet file, or it is damaged: {error}") from None

    def __len__(self) -> int:
        return self._table.num_rows

    def place(self, row: int) -> str:
        """A row by its number."""
        return f"row {row} (counted from 0)"

    def text(self, name: str, row: int) -> str:
        """A cell as NumPy writes it."""
        return str(self._table.column(name).slice(row, 1).to_numpy()[0])

    def numbers(self, name: str) -> Column:
        """A column of integers, floats, decimals or booleans, NaN where it has nulls."""
        column = self._table.column(name)
        if not any(is_kind(column.type) for is_kind in NUMERIC):
            raise InputError(f"{self._path}, column {name!r} holds values of type {column.type}, which are not numbers")
        return column.cast(pa.float64(), safe=False).to_numpy(), {}

    def seconds(self, name: str) -> Column:
        """A column of numbers as they are, or of timestamps or dates as seconds after the first."""
        column = self._table.column(name)
        if pa.types.is_date(column.type):
            column = column.cast(pa.timestamp("ms"))
        if not pa.types.is_timestamp(column.type):
            return self.numbers(name)
        ticks = column.cast(pa.int64())  # subtracted as integers, or nanoseconds since 1970 would be rounded
        passed = pc.call_function("subtract", [ticks, ticks[0]])
        return passed.cast(pa.float64(), safe=False).to_numpy() / TICKS_PER_SECOND[column.type.unit], {}


def encode_parquet(columns: Mapping[str, np.ndarray]) -> bytes:
    """Named columns as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    pq.write_table(pa.table({name: pa.array(np.asarray(values).tolist()) for name, values in columns.items()}), buffer)
    return buffer.getvalue()
