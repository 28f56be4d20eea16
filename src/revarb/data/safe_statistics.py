"""Standard deviation and root mean square without overflow or underflow: outputs come in all units."""

import numpy as np
from jaxtyping import Float64


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
