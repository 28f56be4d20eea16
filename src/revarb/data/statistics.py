"""Statistics of measurements: standard deviation and root mean square, and the distribution around a prediction.

Outputs come in all units: nothing overflows or underflows. The distribution is normal, or Student-t with the same
standard deviation.
"""

import numpy as np
from jaxtyping import Float64
from scipy.special import gammaln, ndtr, ndtri, stdtr, stdtrit


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
