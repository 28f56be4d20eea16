"""The border where arrays are checked, once: records (`Series`) and their scaling (`Standardiser`)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from revarb.errors import InputError


@dataclass(frozen=True, eq=False, init=False)
class Series:
    """One record of a system: inputs `u` and outputs `y`, sampled every `dt`.

    Both are kept as read-only float64 matrices, one row per sample. A vector is one column; `u=None` (or a
    matrix without columns) is a system without inputs.

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
        y_matrix = as_matrix("y", y)
        u_matrix = np.empty((len(y_matrix), 0)) if u is None else as_matrix("u", u)
        if len(u_matrix) != len(y_matrix):
            raise InputError(
                f"u and y must have the same number of rows: u has {len(u_matrix)}, y has {len(y_matrix)}; "
                "cut them to the samples that both have"
            )
        if y_matrix.shape[1] == 0:
            raise InputError("y has no columns: a record needs at least one output")
        if not (np.isfinite(dt) and dt > 0):
            raise InputError(f"dt must be a positive number of time units per sample, received {dt!r}")
        for matrix in (u_matrix, y_matrix):
            matrix.flags.writeable = False
        object.__setattr__(self, "u", u_matrix)
        object.__setattr__(self, "y", y_matrix)
        object.__setattr__(self, "dt", float(dt))
        object.__setattr__(self, "input_names", _names("u", input_names, u_matrix.shape[1]))
        object.__setattr__(self, "output_names", _names("y", output_names, y_matrix.shape[1]))

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Series({len(self)} samples, inputs {self.input_names}, outputs {self.output_names}, dt={self.dt})"


def as_matrix(name: str, values: ArrayLike) -> Float64[np.ndarray, "N D"]:
    """A float64 copy of rank 2 without NaN or infinity; a vector becomes one column."""
    try:
        matrix = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a table of numbers: {error}") from None
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2:
        raise InputError(f"{name} must be a vector or a matrix [samples, columns], received shape {matrix.shape}")
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        row, column = bad[0]
        raise InputError(
            f"{name} has {len(bad)} value(s) that are not finite, the first ({matrix[row, column]}) in row {row}, "
            f"column {column}; remove or fill them"
        )
    return matrix


def as_records(records: Series | Sequence[Series]) -> tuple[Series, ...]:
    """One record or several, as a tuple whose members agree in their columns and sampling."""
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


@dataclass(frozen=True, eq=False)
class Standardiser:
    """Means and standard deviations of the training part; the models only ever see z-scores."""

    u_mean: Float64[np.ndarray, " Du"]
    u_std: Float64[np.ndarray, " Du"]
    y_mean: Float64[np.ndarray, " Dy"]
    y_std: Float64[np.ndarray, " Dy"]

    @classmethod
    def of(cls, records: Sequence[Series]) -> "Standardiser":
        """Scaling from all training samples together; a constant column is refused by name."""
        u = np.concatenate([record.u for record in records])
        y = np.concatenate([record.y for record in records])
        return cls(u.mean(0), _spread("input", records[0].input_names, u),
                   y.mean(0), _spread("output", records[0].output_names, y))  # fmt: skip

    def inputs(self, u: Float64[np.ndarray, "N Du"]) -> Float64[np.ndarray, "N Du"]:
        """Raw inputs to z-scores."""
        return (u - self.u_mean) / self.u_std

    def outputs(self, y: Float64[np.ndarray, "N Dy"]) -> Float64[np.ndarray, "N Dy"]:
        """Raw outputs to z-scores."""
        return (y - self.y_mean) / self.y_std

    def raw_outputs(self, y: Float64[np.ndarray, "*N Dy"]) -> Float64[np.ndarray, "*N Dy"]:
        """Z-scored outputs back to raw units."""
        return y * self.y_std + self.y_mean

    def raw_spread(self, std: Float64[np.ndarray, "*N Dy"]) -> Float64[np.ndarray, "*N Dy"]:
        """Standard deviations of z-scored outputs back to raw units."""
        return std * self.y_std


def _names(prefix: str, names: Sequence[str] | None, columns: int) -> tuple[str, ...]:
    if names is None:
        return (prefix,) if columns == 1 else tuple(f"{prefix}{column}" for column in range(columns))
    if len(names) != columns:
        raise InputError(f"{prefix} has {columns} column(s) but {len(names)} name(s): {list(names)}")
    return tuple(names)


def _spread(what: str, names: tuple[str, ...], values: np.ndarray) -> np.ndarray:
    # Compared with the size of the values: the rounding of a constant 1e6 is not a signal.
    std = values.std(0)
    constant = std <= 1e-12 * np.maximum(np.abs(values).max(0, initial=0.0), 1e-300)
    if constant.any():
        column = int(np.argmax(constant))
        raise InputError(
            f"{what} column {names[column]!r} is constant ({values[0, column]}) in the training data; leave it out"
        )
    return std
