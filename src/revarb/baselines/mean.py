"""The training mean: the row that unmasks a useless benchmark."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

from revarb.baselines.held_out import MIN_ERRORS, MIN_STD, TAIL, held_out_errors, rows_outside
from revarb.baselines.narx import FittedByResiduals
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, as_records
from revarb.data.windows import Order
from revarb.errors import check_seed
from revarb.optim.status import Status


@dataclass(frozen=True)
class Mean:
    """Predicts the training mean, whatever the inputs."""

    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedMean":
        """Take the mean; its band is as wide as the deviations of a held-out piece from the mean of the rest.

        Only measured values count. An output that was hardly measured in that piece gets the spread of all its values.
        """
        records = as_records(train)
        prep = Preprocessor.from_records(records, Order(0, 0, 1))
        y = np.concatenate([prep.scaling.outputs(record.y) for record in records])
        apart = rows_outside(prep, [len(record) for record in records], TAIL)
        constant = [np.broadcast_to(_mean_of_measured(y[apart]), record.y.shape) for record in records]
        spread = _spread(held_out_errors(prep, records, constant, TAIL))
        return FittedMean(prep, Status.CONVERGED, check_seed(seed), spread)


@dataclass(frozen=True, eq=False, repr=False)
class FittedMean(FittedByResiduals):
    """The training mean."""

    def mean_run(self, z: Float64[np.ndarray, "T Du"]) -> Float64[np.ndarray, "T Dy"]:
        """Zero, which is the mean of z-scores."""
        return np.zeros((len(z), len(self.output_names)))


def _mean_of_measured(values: Float64[np.ndarray, "R Dy"]) -> Float64[np.ndarray, " Dy"]:
    # Zero, the mean of all z-scores, where nothing was measured.
    return np.nansum(values, axis=0) / np.maximum(_measured(values), 1)


def _spread(deviations: Float64[np.ndarray, "E Dy"]) -> Float64[np.ndarray, " Dy"]:
    held_out = np.maximum(np.sqrt(_mean_of_measured(deviations**2)), MIN_STD)
    return np.where(_measured(deviations) >= MIN_ERRORS, held_out, 1.0)


def _measured(values: Float64[np.ndarray, "R Dy"]) -> Int[np.ndarray, " Dy"]:
    return np.isfinite(values).sum(0)
