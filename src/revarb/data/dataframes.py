"""Arrays and data frames: matrices of numbers in, the same kind of frame out.

Data frames of pandas, polars and other libraries are read and made through narwhals.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from jaxtyping import Float64
from narwhals.dependencies import is_into_dataframe, is_into_series, is_polars_lazyframe
from narwhals.exceptions import NarwhalsError
from numpy.typing import ArrayLike

from revarb.errors import InputError, describe

DEFAULT_BACKENDS = ("pandas", "polars")  # for results of plain arrays: the first that is installed


class RowIndex(NamedTuple):
    """Where rows came from: the library of the user's frame, and its row labels where that library has them."""

    backend: str
    labels: Any | None

    def seconds(self) -> Float64[np.ndarray, " N"] | None:
        """Seconds since the first row, where the labels are times; None for other labels."""
        if self.labels is None or not len(self.labels) or getattr(self.labels.dtype, "kind", "") not in ("m", "M"):
            return None
        kind = "datetime64[ns]" if self.labels.dtype.kind == "M" else "timedelta64[ns]"
        times = np.asarray(self.labels, dtype=kind)
        return (times - times[0]) / np.timedelta64(1, "s")


@dataclass(frozen=True, eq=False)
class TableValues:
    """A table of numbers with NaN where a value is missing; names and row index where it came as a data frame."""

    matrix: Float64[np.ndarray, "N D"]
    names: tuple[str, ...] | None = None  # None where the columns are not named by texts
    index: RowIndex | None = None


def read_values(name: str, values: Any) -> TableValues:
    """The contents of an array, a data frame, or one of its columns."""
    frame = _as_frame(name, values)
    if frame is None:
        return TableValues(_read_array(name, values))
    columns = [frame] if isinstance(frame, nw.Series) else list(frame.iter_columns())
    matrix = np.empty((len(frame), len(columns)))
    for position, column in enumerate(columns):
        matrix[:, position] = _column_values(name, column)
    labels = tuple(column.name for column in columns)
    named = all(isinstance(label, str) and label for label in labels)
    return TableValues(matrix, labels if named else None, _index_of(frame))


def as_matrix(
    name: str, values: Any, gaps: bool = False, columns: Sequence[str] | None = None
) -> Float64[np.ndarray, "N D"]:
    """A float64 copy of rank 2 without infinity, and without NaN unless `gaps` are allowed; a vector is one column.

    With `columns`, those of a data frame are matched by name; others it may have are left out.
    """
    table = read_values(name, values)
    matrix = table.matrix if columns is None or table.names is None else _select_columns(name, table, tuple(columns))
    refuse_values(name, matrix, np.isinf(matrix) if gaps else ~np.isfinite(matrix), range(matrix.shape[1]))
    return matrix


def refuse_values(name: str, matrix: np.ndarray, wrong: np.ndarray, columns: Sequence[str | int]) -> None:
    """Refuse a matrix with values that are `wrong`, with the place of the first."""
    places = np.argwhere(wrong)
    if len(places):
        row, column = places[0]
        raise InputError(
            f"{name} has {len(places)} value(s) that are not finite, the first ({matrix[row, column]}) in row {row}, "
            f"column {columns[column]!r}; remove or fill them"
        )


def column_names(prefix: str, names: Iterable[str] | None, columns: int) -> tuple[str, ...]:
    """`names`, checked to be one text per column, all different; without names, `prefix` and a number."""
    if names is None:
        return (prefix,) if columns == 1 else tuple(f"{prefix}{column}" for column in range(columns))
    names = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else names
    if isinstance(names, str) or not isinstance(names, Sequence) or len(names) != columns:
        what = f"{prefix} has {columns} column(s), so it needs a list of as many names"
        raise InputError(f"{what}, received {describe(names)}")
    odd = [name for name in names if not isinstance(name, str) or not is_encodable(name)]
    if odd:
        raise InputError(f"a column of {prefix} must be named by a text, received {describe(odd[0])}")
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        raise InputError(f"column {doubled[0]!r} is named twice in {prefix}; name each once")
    return tuple(names)


def is_encodable(name: str) -> bool:
    """Whether a name can be written to a file: a lone surrogate is a str, but has no encoding."""
    return name.encode(errors="replace").decode() == name


def row_index(values: Any) -> RowIndex | None:
    """The row index of a data frame or column; None for anything else."""
    frame = _as_frame("u", values)
    return None if frame is None else _index_of(frame)


def same_labels(one: RowIndex | None, other: RowIndex | None) -> bool:
    """Whether two row indexes have the same labels; those without labels agree with all."""
    if one is None or other is None or one.labels is None or other.labels is None:
        return True
    return bool(one.labels.equals(other.labels))


def make_dataframe(columns: Mapping[str, np.ndarray], index: RowIndex | None) -> Any:
    """A native data frame of the kind that `index` names, with its row labels; by default of pandas, else of polars."""
    backend = _installed_backend() if index is None else index.backend
    frame = nw.from_dict(dict(columns), backend=backend).to_native()  # pyright: ignore[reportArgumentType]
    if index is not None and index.labels is not None:
        frame.index = index.labels
    return frame


def label_rows(index: RowIndex | None, rows: int) -> tuple[str, np.ndarray]:
    """The name of the row labels and the labels, as numbers or texts; without labels "row" and 0, 1, 2, …"""
    if index is None or index.labels is None:
        return "row", np.arange(rows)
    labels = np.asarray(index.labels)
    named = getattr(index.labels, "name", None)
    values = labels if labels.dtype.kind in "iuf" else np.array([str(label) for label in index.labels])
    return "row" if named is None else str(named), values


def _select_columns(name: str, table: TableValues, columns: tuple[str, ...]) -> Float64[np.ndarray, "N D"]:
    assert table.names is not None
    missing = [column for column in columns if column not in table.names]
    if not missing:
        return table.matrix[:, [table.names.index(column) for column in columns]]
    if columns in (column_names("u", None, len(columns)), column_names("y", None, len(columns))):
        return table.matrix  # the model was trained on arrays without names: columns count by their position
    raise InputError(
        f"{name} has no column {missing[0]!r}; its columns are {list(table.names)}, and {list(columns)} are needed "
        "(an array is taken by position)"
    )


def _read_array(name: str, values: ArrayLike) -> Float64[np.ndarray, "N D"]:
    try:
        raw = np.asarray(values)
        with np.errstate(over="ignore"):  # a long double may overflow; it is refused below, as infinity
            matrix = np.array(raw, dtype=np.float64) if raw.dtype.kind in "biufO" else None
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be a table of numbers: {error}") from None
    if matrix is None:
        raise InputError(f"{name} must be a table of real numbers, received {raw.dtype} values")
    if isinstance(values, np.ma.MaskedArray):
        matrix[np.ma.getmaskarray(values)] = np.nan  # masked values were not measured
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2:
        raise InputError(f"{name} must be a vector or a matrix [samples, columns], received shape {matrix.shape}")
    return matrix


def _column_values(name: str, column: nw.Series) -> Float64[np.ndarray, " N"]:
    if column.dtype == nw.Object:
        values = column.to_numpy()
    elif column.dtype.is_numeric() or column.dtype == nw.Boolean:
        values = column.cast(nw.Float64).to_numpy()
    else:
        wrong = f"its column {column.name!r} holds {column.dtype} values"
        raise InputError(f"{name} must be a table of numbers, but {wrong}")
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a table of numbers, but in its column {column.name!r}: {error}") from None


def _as_frame(name: str, values: Any) -> nw.DataFrame | nw.Series | None:
    if is_polars_lazyframe(values):
        raise InputError(f"{name} is a LazyFrame, whose values are not computed yet; call .collect() first")
    try:
        if is_into_series(values):
            return nw.from_native(values, series_only=True)
        return nw.from_native(values, eager_only=True) if is_into_dataframe(values) else None
    except NarwhalsError as error:
        raise InputError(f"{name} is a data frame that cannot be read: {error}") from None


def _index_of(frame: nw.DataFrame | nw.Series) -> RowIndex:
    return RowIndex(str(frame.implementation), nw.maybe_get_index(frame))


def _installed_backend() -> str:
    for backend in DEFAULT_BACKENDS:
        if find_spec(backend) is not None:
            return backend
    raise InputError('to_frame needs pandas or polars; pip install "revarb[pandas]", or use to_csv')
