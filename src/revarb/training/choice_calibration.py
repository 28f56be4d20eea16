"""Bands of a chosen model from the held-out runs that chose it."""

import numpy as np
from jaxtyping import Float64

from revarb.data.distribution import half_width
from revarb.data.scaling import Standardiser
from revarb.errors import RevarbError
from revarb.models.calibration import Calibration
from revarb.models.fitted_rgp import FittedRGP
from revarb.training.calibrate import find_calibration
from revarb.training.calibration_rule import LEVEL, POOLED, find_worst_quantile
from revarb.training.held_out import MIN_STD
from revarb.training.segments import simulate_segments
from revarb.training.trials import HeldOut, Scored

HORIZONS = 20  # steps after a measured start for which a linear model has a band of its own
LEAST_NOISE = 1e-4  # variance of the output noise, z-scored


def calibrate_nonlinear(scored: Scored, held_out: HeldOut) -> Calibration:
    """Noises and widths of a recurrent GP, from its fits without each fold."""
    folds = [model for _, model in sorted(scored.folds.items()) if isinstance(model, FittedRGP)]
    return find_calibration(folds, held_out.records, held_out.stretches, LEAST_NOISE, POOLED)


def calibrate_linear(
    scored: Scored, held_out: HeldOut, scaling: Standardiser
) -> tuple[Float64[np.ndarray, " Dy"], Float64[np.ndarray, "K Dy"]]:
    """Standard deviations of a linear model: of cold runs, and 1 … K steps after a measured start.

    Each is such that its 95 % band holds 95 % of the errors of the worst held-out stretch. Where a prediction from a
    measured start diverges, K is 0.
    """
    cold = []
    for fold, model in scored.folds.items():
        inside = [segment for segment in held_out.segments if segment.fold == fold]
        cold += [error / scaling.y_std for error in simulate_segments(model.chain, model.preprocessor, inside)]
    residual_std = _find_std(cold)
    try:
        ahead = [_predict(scored, held_out, horizon + 1, scaling) for horizon in range(HORIZONS)]
    except RevarbError:
        return residual_std, np.empty((0, len(residual_std)))
    return residual_std, np.stack([_find_std(errors) for errors in ahead])


def _predict(scored: Scored, held_out: HeldOut, horizon: int, scaling: Standardiser) -> list[np.ndarray]:
    # Every record once for each fold that left out some of it.
    errors = []
    for fold, model in scored.folds.items():
        stretches = [stretch for stretch in held_out.stretches if stretch.fold == fold]
        for number in sorted({stretch.record for stretch in stretches}):
            record = held_out.records[number]
            error = (model.predict(record, horizon).mean - record.y) / scaling.y_std
            errors += [error[stretch.rows] for stretch in stretches if stretch.record == number]
    return errors


def _find_std(errors: list[np.ndarray]) -> Float64[np.ndarray, " Dy"]:
    # An output that is measured in no stretch gets the standard deviation of its training values, 1.
    by_output = zip(*([column[np.isfinite(column)] for column in error.T] for error in errors), strict=True)
    stds = np.array([find_worst_quantile(each) for each in by_output]) / half_width(LEVEL)
    return np.maximum(np.where(np.isnan(stds), 1.0, stds), MIN_STD)
