"""Errors of a linear model and of the training mean on held-out stretches, to compare the error of a model with."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.errors import RevarbError
from revarb.training.linear_choice import score_linear
from revarb.training.segments import cut_segments
from revarb.training.stretches import FOLDS, Stretch, mask_fold


def measure_mean(records: Sequence[Series], stretches: Sequence[Stretch]) -> Float64[np.ndarray, " S"]:
    """Root mean square error of the mean of the other folds on every stretch, in units of the outputs' spread.

    NaN where nothing was measured.
    """
    scaling = Standardiser.from_records(records)
    means = [Standardiser.from_records(mask_fold(records, stretches, fold)).y_mean for fold in range(FOLDS)]
    errors = [(records[each.record].y[each.rows] - means[each.fold]) / scaling.y_std for each in stretches]
    return np.array([np.sqrt(np.nanmean(error**2)) if np.isfinite(error).any() else np.nan for error in errors])


def measure_linear(
    records: Sequence[Series], stretches: Sequence[Stretch], largest: Order
) -> Float64[np.ndarray, " S"] | None:
    """Errors of the cold runs of ARX models without each fold, as `measure_mean`; None where none can be fitted."""
    try:
        return score_linear(records, stretches, cut_segments(records, stretches), largest).errors
    except RevarbError:
        return None
