"""Scaling of records to z-scores and back, and statistics that do not overflow."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.special import gammaln, ndtr, ndtri, stdtr, stdtrit

from revarb.data.series import Series
from revarb.errors import InputError

MIN_MEASURED = 2  # values of an output: one has no standard deviation
FEW_ROWS = 100  # in fewer a column may not have moved yet
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
        few = len(values) < FEW_ROWS
        rows, remedy = (f"all {len(values)} rows of ", "add rows in which it moves") if few else ("", "leave it out")
        raise InputError(
            f"{what} column {names[column]!r} is constant ({np.nanmin(values[:, column])}) in {rows}the training data; "
            f"{remedy}"
        )
    return relative * largest


def relative_std(values: Float64[np.ndarray, "N D"]) -> tuple[Float64[np.ndarray, " D"], Float64[np.ndarray, " D"]]:
    """Standard deviation of every column in units of its largest absolute value, and that value; NaN is left out."""
    largest = np.nanmax(np.abs(values), axis=0, initial=0.0)
    return np.nanstd(values / np.where(largest > 0.0, largest, 1.0), axis=0), largest


def safe_std(values: Float64[np.ndarray, "N D"]) -> Float64[np.ndarray, " D"]:
    """Standard deviation of every column; NaN is left out."""
    relative, largest = relative_std(values)
    return relative * largest


def safe_rms(values: Float64[np.ndarray, "N *D"]) -> Float64[np.ndarray, "*D"]:
    """Root of the mean square over the first axis."""
    largest = float(np.abs(values).max())
    if not 0.0 < largest < np.inf:
        return np.full(values.shape[1:], largest)
    return np.asarray(largest * np.sqrt(np.mean((values / largest) ** 2, axis=0)))


def half_width(level: float, degrees: float | None = None) -> float:
    """Half the width of the central interval that contains a share `level`, in standard deviations.

    Of a normal distribution, or of a Student-t with more than two degrees of freedom.
    """
    below = 0.5 * (1.0 - level)
    return -float(ndtri(below) if degrees is None else stdtrit(degrees, below) * _scale(degrees))


def log_density(
    error: Float64[np.ndarray, "..."], std: Float64[np.ndarray, "..."], degrees: float | None = None
) -> Float64[np.ndarray, "..."]:
    """Logarithm of the density at these distances from the mean."""
    with np.errstate(over="ignore"):
        if degrees is None:
            return -0.5 * np.log(2.0 * np.pi) - np.log(std) - 0.5 * (error / std) ** 2
        scale = std * _scale(degrees)
        constant = gammaln(0.5 * (degrees + 1.0)) - gammaln(0.5 * degrees) - 0.5 * np.log(np.pi * degrees)
        return constant - np.log(scale) - 0.5 * (degrees + 1.0) * np.log1p((error / scale) ** 2 / degrees)


def share_below(distance: Float64[np.ndarray, "..."], degrees: float | None = None) -> Float64[np.ndarray, "..."]:
    """Share of the measurements below a distance from the mean, in standard deviations."""
    return ndtr(distance) if degrees is None else stdtr(degrees, distance / _scale(degrees))


def _scale(degrees: float) -> float:
    # Of a Student-t with unit variance.
    return float(np.sqrt((degrees - 2.0) / degrees))
