"""The border where arrays are checked, once: records (`Series`) and their scaling (`Standardiser`)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from revarb.errors import InputError, check_number, describe


@dataclass(frozen=True, eq=False, init=False)
class Series:
    """One record of a system: inputs `u` and outputs `y`, sampled every `dt`.

    Both are kept as read-only float64 matrices, one row per sample. A vector is one column; `u=None` (or a
    matrix without columns) is a system without inputs. NaN in `y` is a value that was not measured; `u` has no gaps.

    >>> Series(u=[0.0, 1.0, 0.5], y=[0.1, 0.2, 0.6]).y.shape
    (3, 1)
    """

    u: Float64[np.ndarray, "N Du"]
    y: Float64[np.ndarray, "N Dy"]
    dt: float
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    def __init__(
        self,
        u: ArrayLike | None,
        y: ArrayLike,
        dt: float = 1.0,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
    ):
        y_matrix = _numbers("y", y)
        u_matrix = np.empty((len(y_matrix), 0)) if u is None else _numbers("u", u)
        if len(u_matrix) != len(y_matrix):
            raise InputError(
                f"u and y must have the same number of rows: u has {len(u_matrix)}, y has {len(y_matrix)}; "
                "cut them to the samples that both have"
            )
        if y_matrix.shape[1] == 0:
            raise InputError("y has no columns: a record needs at least one output")
        for matrix in (u_matrix, y_matrix):
            matrix.flags.writeable = False
        object.__setattr__(self, "u", u_matrix)
        object.__setattr__(self, "y", y_matrix)
        object.__setattr__(self, "dt", check_number("dt", dt, above=0.0))
        object.__setattr__(self, "input_names", column_names("u", input_names, u_matrix.shape[1]))
        object.__setattr__(self, "output_names", column_names("y", output_names, y_matrix.shape[1]))
        _refuse("u", u_matrix, ~np.isfinite(u_matrix), self.input_names)
        _refuse("y", y_matrix, np.isinf(y_matrix), self.output_names)
        both = [name for name in self.input_names if name in self.output_names]
        if both:
            raise InputError(f"column {both[0]!r} is named as an input and as an output; it can only be one of them")

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        columns = f"inputs {self.input_names}, outputs {self.output_names}"
        gaps = f", {self.missing} of {self.y.size} output values missing" if self.missing else ""
        return f"{type(self).__name__}({len(self)} samples, {columns}, dt={self.dt}{gaps})"

    @property
    def missing(self) -> int:
        """Number of output values that were not measured."""
        return int(np.isnan(self.y).sum())


@dataclass(frozen=True, eq=False, init=False)
class Window(Series):
    """What was measured just before a simulation begins; NaN in `y` where nothing was.

    `model.simulate(u, start=Window(u_before, y_before))` infers the latent states behind it.
    """


def as_matrix(name: str, values: ArrayLike, gaps: bool = False) -> Float64[np.ndarray, "N D"]:
    """A float64 copy of rank 2 without infinity, and without NaN unless it may have `gaps`; a vector is one column."""
    matrix = _numbers(name, values)
    _refuse(name, matrix, np.isinf(matrix) if gaps else ~np.isfinite(matrix), range(matrix.shape[1]))
    return matrix


def _numbers(name: str, values: ArrayLike) -> Float64[np.ndarray, "N D"]:
    try:
        raw = np.asarray(values)
        with np.errstate(over="ignore"):  # a long double may be too large: it is refused below, as infinity
            matrix = np.array(raw, dtype=np.float64) if raw.dtype.kind in "biufO" else None
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be a table of numbers: {error}") from None
    if matrix is None:
        raise InputError(f"{name} must be a table of real numbers, received {raw.dtype} values")
    if isinstance(values, np.ma.MaskedArray):
        matrix[np.ma.getmaskarray(values)] = np.nan  # what lies below a mask was not measured
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2:
        raise InputError(f"{name} must be a vector or a matrix [samples, columns], received shape {matrix.shape}")
    return matrix


def _refuse(name: str, matrix: np.ndarray, wrong: np.ndarray, columns: Sequence[str | int]) -> None:
    places = np.argwhere(wrong)
    if len(places):
        row, column = places[0]
        raise InputError(
            f"{name} has {len(places)} value(s) that are not finite, the first ({matrix[row, column]}) in row {row}, "
            f"column {columns[column]!r}; remove or fill them"
        )


def as_records(records: Series | Sequence[Series]) -> tuple[Series, ...]:
    """One record or several, as a tuple whose members agree in their columns and sampling."""
    if not isinstance(records, Series | Sequence | np.ndarray):
        raise InputError(f"a record must be a Series or a list of Series, received {type(records).__name__}")
    several = (records,) if isinstance(records, Series) else tuple(records)
    if not several:
        raise InputError("no record was given: pass a Series or a list of Series")
    for position, record in enumerate(several):
        if not isinstance(record, Series):
            raise InputError(
                f"record {position} is a {type(record).__name__}, not a Series; wrap it: revarb.Series(u, y)"
            )
        for what in ("input_names", "output_names", "dt"):
            ours, first = getattr(record, what), getattr(several[0], what)
            if ours != first:
                raise InputError(f"records must agree in {what}: record 0 has {first}, record {position} has {ours}")
    return several


def column_names(prefix: str, names: Sequence[str] | None, columns: int) -> tuple[str, ...]:
    """`names`, if they are as many different texts as there are columns; without any, `prefix` and a number."""
    if names is None:
        return (prefix,) if columns == 1 else tuple(f"{prefix}{column}" for column in range(columns))
    names = names.tolist() if isinstance(names, np.ndarray) else names
    if isinstance(names, str) or not isinstance(names, Sequence) or len(names) != columns:
        what = f"{prefix} has {columns} column(s), so it needs a list of as many names"
        raise InputError(f"{what}, received {describe(names)}")
    odd = [name for name in names if not isinstance(name, str) or not _can_be_written(name)]
    if odd:
        raise InputError(f"a column of {prefix} must be named by a text, received {describe(odd[0])}")
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        raise InputError(f"column {doubled[0]!r} is named twice in {prefix}; name each once")
    return tuple(names)


def _can_be_written(name: str) -> bool:
    # Half a character (a lone surrogate) is a str, but no file takes it.
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
