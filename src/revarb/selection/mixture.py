"""The bands of a mixture: the widths and tails of its members with which it holds its share of held-out errors.

Members that disagree widen the band by themselves. What is calibrated is the rest: a factor on the standard deviations
of the members, one for cold and long runs and one for the steps after a measured start, and the degrees of freedom.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.data.scaling import half_width, log_density
from revarb.fitting.calibrate import HeldOutBands
from revarb.fitting.calibration_rule import HEAVY_TAILS, LEVEL, TAILS, WIDTHS, RunErrors, find_rank
from revarb.models.ensemble import Member
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP

LEAST_FACTOR = 0.1  # on the members' standard deviations: their noise is never left out
LEAST_DEGREES = 2.05  # of a member's Student-t


class MixtureErrors(NamedTuple):
    """Errors of a mixture at measured samples, in standard deviations of the outputs, and their two variances."""

    error: Float64[np.ndarray, " V"]
    within: Float64[np.ndarray, " V"]  # mean of the members' variances
    between: Float64[np.ndarray, " V"]  # of the members' means


class Band(NamedTuple):
    """A factor on the members' standard deviations, and the degrees of freedom of the mixture; None: Gaussian."""

    factor: float
    degrees: float | None


def scale_bands(models: Sequence[Member], bands: Sequence[HeldOutBands | None]) -> list[Member]:
    """Calibrated models whose mixture has bands that hold their share of its held-out errors.

    Where a member is not calibrated, or all held-out runs diverged, the bands are those of the members.
    """
    known = [each for each in bands if each is not None]
    cold, ahead = (join_errors([getattr(each, name) for each in known]) for name in ("cold", "ahead"))
    if len(known) < len(bands) or cold is None:
        return list(models)
    heavy = any(isinstance(model, FittedRGP) and model.spec.noise == "student-t" for model in models)
    far = find_likely_band(cold) if heavy else find_band(cold)
    near = far.factor if ahead is None else find_factor(ahead, far.degrees)
    degrees = _share_degrees(far.degrees, models)
    return [_scale_band(model, near, far.factor, degrees) for model in models]


def join_errors(runs: Sequence[Mapping[int, RunErrors]]) -> MixtureErrors | None:
    """The errors of the mixture on the blocks that all members have; None without any."""
    common = [block for block in runs[0] if all(block in each for each in runs)] if runs else []
    if not common:
        return None
    errors, variances = (
        np.stack([np.concatenate([getattr(each[block], name) for block in common]) for each in runs])
        for name in ("error", "variance")
    )
    return MixtureErrors(errors.mean(axis=0), variances.mean(axis=0), errors.var(axis=0))


def find_factor(errors: MixtureErrors, degrees: float | None) -> float:
    """The factor on the members' standard deviations with which the 95 % band holds its share of the errors."""
    needed = (errors.error / half_width(LEVEL, degrees)) ** 2 - errors.between
    factors = np.sort(np.sqrt(np.maximum(needed, 0.0) / errors.within))
    return max(float(factors[find_rank(len(factors)) - 1]), LEAST_FACTOR)


def find_band(errors: MixtureErrors) -> Band:
    """The factor and the tails with which the 95 % and the 50 % band hold their share; Gaussian where that suffices."""
    gaussian = Band(find_factor(errors, None), None)
    if _measure_share(errors, gaussian, 0.5) <= 0.5:
        return gaussian
    bands = [Band(find_factor(errors, degrees), degrees) for degrees in TAILS]
    return min(bands, key=lambda band: abs(_measure_share(errors, band, 0.5) - 0.5))


def _measure_share(errors: MixtureErrors, band: Band, level: float) -> float:
    half = half_width(level, band.degrees) * np.sqrt(band.factor**2 * errors.within + errors.between)
    return float(np.mean(np.abs(errors.error) <= half))


def find_likely_band(errors: MixtureErrors) -> Band:
    """The factor and the tails with the largest likelihood: with Student-t noise outliers are to be predicted, too."""
    bands = [Band(float(factor), degrees) for factor in WIDTHS for degrees in HEAVY_TAILS]

    def measure(band: Band) -> float:
        std = np.sqrt(band.factor**2 * errors.within + errors.between)
        return float(np.mean(log_density(errors.error, std, band.degrees)))

    return max(bands, key=measure)


def _share_degrees(degrees: float | None, models: Sequence[Member]) -> float | None:
    # Those of each recurrent GP: the 1/ν of a mixture is the mean of its members', and a linear member has none.
    if degrees is None:
        return None
    recurrent = sum(isinstance(model, FittedRGP) for model in models)
    return max(degrees * recurrent / len(models), LEAST_DEGREES)


def _scale_band(model: Member, near: float, far: float, degrees: float | None) -> Member:
    if isinstance(model, FittedARX):
        return replace(model, residual_std=far * model.residual_std, horizon_std=near * model.horizon_std)
    assert isinstance(model, FittedRGP) and model.calibration is not None
    known = model.calibration
    factors = (*(near * factor for factor in known.factors[:-1]), far * known.factors[-1])
    return replace(model, calibration=replace(known, factors=factors, degrees_of_freedom=degrees))
