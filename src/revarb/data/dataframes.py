"""Data frames of pandas, polars and other libraries, through narwhals: values in, the same kind of frame out."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from jaxtyping import Float64
from narwhals.dependencies import is_into_dataframe, is_into_series

from revarb.errors import InputError

DEFAULT_BACKENDS = ("pandas", "polars")  # for results of plain arrays: the first that is installed


class RowIndex(NamedTuple):
    """Where rows came from: the library of the user's frame, and its row labels where that library has them."""

    backend: str
    labels: Any | None


@dataclass(frozen=True, eq=False)
class FrameValues:
    """The contents of a data frame: numbers with NaN where a value is missing, column names, and the row index."""

    matrix: Float64[np.ndarray, "N D"]
    names: tuple[str, ...] | None  # None where the columns are not named by texts
    index: RowIndex


def read_dataframe(name: str, values: Any) -> FrameValues | None:
    """The contents of a data frame or of one of its columns; None for anything else, such as an array."""
    if is_into_series(values):
        column = nw.from_native(values, series_only=True)
        names, columns, native = [column.name], [column], column
    elif is_into_dataframe(values):
        native = nw.from_native(values, eager_only=True)
        names, columns = list(native.columns), list(native.iter_columns())
    else:
        return None
    matrix = np.empty((len(native), len(columns)))
    for position, (label, column) in enumerate(zip(names, columns, strict=True)):
        matrix[:, position] = _column_values(name, label, column)
    named = all(isinstance(label, str) and label for label in names)
    index = RowIndex(str(native.implementation), nw.maybe_get_index(native))
    return FrameValues(matrix, tuple(names) if named else None, index)


def row_index(values: Any) -> RowIndex | None:
    """The row index of a data frame or column; None for anything else."""
    if is_into_series(values):
        native = nw.from_native(values, series_only=True)
    elif is_into_dataframe(values):
        native = nw.from_native(values, eager_only=True)
    else:
        return None
    return RowIndex(str(native.implementation), nw.maybe_get_index(native))


def make_dataframe(columns: Mapping[str, np.ndarray], index: RowIndex | None) -> Any:
    """A native data frame of the kind that `index` names, with its row labels; by default of pandas, else of polars."""
    backend = _installed_backend() if index is None else index.backend
    frame = nw.from_dict(dict(columns), backend=backend).to_native()  # pyright: ignore[reportArgumentType]
    if index is not None and index.labels is not None:
        frame.index = index.labels
    return frame


def _column_values(name: str, label: Any, column: nw.Series) -> Float64[np.ndarray, " N"]:
    if not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        raise InputError(f"{name} must be a table of numbers, but its column {label!r} holds {column.dtype} values")
    return np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)


def _installed_backend() -> str:
    for backend in DEFAULT_BACKENDS:
        if find_spec(backend) is not None:
            return backend
    raise InputError('to_frame needs pandas or polars; pip install "revarb[pandas]", or use to_csv')
