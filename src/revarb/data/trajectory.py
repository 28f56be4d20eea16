"""The result of a simulation, in raw units."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.special import ndtri

from revarb.errors import InputError, check_number

MAX_DISAGREEMENT = 0.25
"""So many standard deviations apart, two means still tell the same story: a rule of thumb (docs/decisions.md)."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A simulated output: one row per row of the input, one column per output.

    `std` is the standard deviation of the measured output (noise included); a mean-only run has none.
    `samples` [K, T, Dy] are there for method="samples". `skip` is the number of first rows in which the state is
    still settling (lags + input lags), which the scores leave out.
    `disagreement` is there for method="samples", where a row is left after `skip`: how far the mean of the trajectories
    is from that of method="moments", in standard deviations of the latter, root mean square over rows and outputs.
    `start` says where the run began. `widening` is what a calibrated model makes its intervals wider by, row by row.
    """

    mean: Float64[np.ndarray, "T Dy"]
    std: Float64[np.ndarray, "T Dy"] | None
    method: str
    skip: int
    output_names: tuple[str, ...]
    dt: float = 1.0
    samples: Float64[np.ndarray, "K T Dy"] | None = None
    disagreement: float | None = None
    start: str = "cold"
    widening: Float64[np.ndarray, " T"] | None = None

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def warning(self) -> str | None:
        """A sentence where samples and moments tell different stories."""
        if self.disagreement is None or self.disagreement <= MAX_DISAGREEMENT:
            return None
        return (
            f"samples and moments disagree: their means are {self.disagreement:.2f} standard deviations apart; trust "
            "the samples, for moments take the state for a Gaussian at every step, and here it is not"
        )

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper end of the central interval that should hold a share `level` of the measurements.

        A calibrated model's `widening` was found at the level 0.95, and is applied at every level.
        """
        if not check_number("level", level) < 1.0 or not level > 0.0:
            raise InputError(f"level must be between 0 and 1, received {level!r}")
        if self.std is None:
            raise InputError(
                f"a simulation with method={self.method!r} has no uncertainty; simulate with method='moments'"
            )
        with np.errstate(over="ignore"):
            half = half_width(level) * self.band_std
            ends = self.mean - half, self.mean + half
        if not np.isfinite(ends).all():
            raise InputError("the band is too wide for any number; rescale the outputs")
        return ends

    @property
    def band_std(self) -> Float64[np.ndarray, "T Dy"]:
        """The standard deviation of the Gaussian whose intervals these are: `std`, widened."""
        assert self.std is not None
        return self.std if self.widening is None else self.std * self.widening[:, None]


def half_width(level: float) -> float:
    """Half the width of the central interval of a standard normal that holds a share `level`."""
    return -float(ndtri(0.5 * (1.0 - level)))
