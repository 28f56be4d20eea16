"""Scaling of records to z-scores and back."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from revarb.data.series import Series
from revarb.data.statistics import relative_std
from revarb.errors import InputError

MIN_MEASURED = 2  # values of an output: one has no standard deviation
MAX_CONSTANT = 1e-12  # relative standard deviation of a constant column: the rounding of 1e6 is not a signal


@dataclass(frozen=True, eq=False)
class Standardiser:
    """Means and standard deviations of the training records; models compute with z-scores."""

    u_mean: Float64[np.ndarray, " Du"]
    u_std: Float64[np.ndarray, " Du"]
    y_mean: Float64[np.ndarray, " Dy"]
    y_std: Float64[np.ndarray, " Dy"]

    @classmethod
    def from_records(cls, records: Sequence[Series]) -> "Standardiser":
        """Scaling from all measured training values together; a column that is constant or missing is refused."""
        _check_measured(records)
        u = np.concatenate([record.u for record in records])
        y = np.concatenate([record.y for record in records])
        with np.errstate(over="ignore", invalid="ignore"):  # a mean that is not finite is refused below
            return cls(u.mean(0), _check_std("input", records[0].input_names, u),
                       np.nanmean(y, axis=0), _check_std("output", records[0].output_names, y))  # fmt: skip

    def __post_init__(self):
        sizes = (self.u_mean.shape == self.u_std.shape, self.y_mean.shape == self.y_std.shape)
        finite = all(np.isfinite(values).all() for values in vars(self).values())
        if not all(sizes) or not finite or not ((self.u_std > 0.0).all() and (self.y_std > 0.0).all()):
            raise InputError("means and standard deviations must be finite, and the latter positive; rescale the data")

    def inputs(self, u: Float64[np.ndarray, "N Du"]) -> Float64[np.ndarray, "N Du"]:
        """Raw inputs to z-scores."""
        with np.errstate(over="ignore"):
            z = (u - self.u_mean) / self.u_std
        if not np.isfinite(z).all():
            raise InputError("u has values that are too far from the training inputs to be z-scored; check its units")
        return z

    def outputs(self, y: Float64[np.ndarray, "N Dy"]) -> Float64[np.ndarray, "N Dy"]:
        """Raw outputs to z-scores; NaN stays NaN."""
        with np.errstate(over="ignore"):
            z = (y - self.y_mean) / self.y_std
        if np.isinf(z).any():
            raise InputError("y has values that are too far apart to be z-scored; rescale it")
        return z

    def raw_outputs(self, y: Float64[np.ndarray, "*N Dy"]) -> Float64[np.ndarray, "*N Dy"]:
        """Z-scored outputs back to raw units."""
        return y * self.y_std + self.y_mean

    def raw_std(self, std: Float64[np.ndarray, "*N Dy"]) -> Float64[np.ndarray, "*N Dy"]:
        """Standard deviations of z-scored outputs back to raw units."""
        return std * self.y_std


def _check_measured(records: Sequence[Series]) -> None:
    for position, record in enumerate(records):
        if record.missing == record.y.size:
            raise InputError(f"record {position} has no measured output value; leave it out")
    measured = np.sum([np.isfinite(record.y).sum(0) for record in records], axis=0)
    if measured.min() < MIN_MEASURED:
        column = int(np.argmin(measured))
        raise InputError(
            f"output column {records[0].output_names[column]!r} has {measured[column]} measured value(s) in the "
            f"training data, and at least {MIN_MEASURED} are needed; leave it out"
        )


def _check_std(what: str, names: tuple[str, ...], values: Float64[np.ndarray, "N D"]) -> Float64[np.ndarray, " D"]:
    relative, largest = relative_std(values)
    constant = relative <= MAX_CONSTANT
    if constant.any():
        column = int(np.argmax(constant))
        raise InputError(
            f"{what} column {names[column]!r} is constant ({np.nanmin(values[:, column])}) in the training data; leave "
            "it out"
        )
    return relative * largest
