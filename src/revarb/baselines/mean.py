"""The training mean as a constant prediction: the baseline that every model must beat."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, as_records
from revarb.data.windows import Order
from revarb.errors import check_seed
from revarb.fitting import quarters
from revarb.models import model_file
from revarb.models.configuration import Configuration
from revarb.models.recipe import Status
from revarb.models.residual_band import FittedByResiduals, check_residual_std


@dataclass(frozen=True)
class Mean(Configuration):
    """Predicts the training mean for any inputs; the baseline that every model must beat.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0))
    >>> model = revarb.Mean().fit(revarb.Series(u, 2.0 + u))
    >>> np.unique(model.simulate(u).mean.round(3)).tolist()
    [2.032]
    """

    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedMean":
        """Compute the mean of the training outputs, and a band from the errors on a held-out piece of them.

        Only measured values are used. An output with fewer than three measured values in the held-out piece gets the
        standard deviation of all its values.

        Parameters
        ----------
        train : Series or list of Series
            The training records.
        seed : int
            Not used: nothing is random.
        progress : bool
            Not used: it takes no time.

        Returns
        -------
        FittedMean

        Raises
        ------
        InputError
            If the records are too short.
        """
        records = as_records(train)
        prep = Preprocessor.from_records(records, Order(0, 0, 1))
        y = np.concatenate([prep.scaling.outputs(record.y) for record in records])
        outside = y[quarters.select_rows_outside(prep, [len(record) for record in records], quarters.TAIL)]
        # Zero, the mean of all z-scored values, for an output that was not measured there.
        mean = np.nansum(outside, axis=0) / np.maximum(np.isfinite(outside).sum(0), 1)
        errors = quarters.compute_quarter_errors(
            prep, records, [np.broadcast_to(mean, record.y.shape) for record in records], quarters.TAIL
        )
        std = np.where(np.isfinite(errors).sum(0) >= quarters.MIN_ERRORS, quarters.estimate_residual_std(errors), 1.0)
        return FittedMean(prep, Status.CONVERGED, check_seed(seed), std)


@dataclass(frozen=True, eq=False, repr=False)
class FittedMean(FittedByResiduals):
    """The training mean, with a band from held-out errors.

    Attributes
    ----------
    residual_std : array [outputs]
        Standard deviation of the held-out errors, z-scored.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0))
    >>> model = revarb.Mean().fit(revarb.Series(u, 2.0 + u))
    >>> model
    FittedMean(inputs ('u',), outputs ('y',), status='converged')
    >>> model.simulate(u)
    Trajectory(60 rows, outputs ('y',), method='residuals', start='cold')
    """

    def run_mean(self, z: Float64[np.ndarray, "T Du"]) -> Float64[np.ndarray, "T Dy"]:
        """Return zeros, the mean of z-scored outputs.

        Parameters
        ----------
        z : array [T, inputs]
            Inputs, z-scored; only their number of rows is used.

        Returns
        -------
        array [T, outputs]
        """
        return np.zeros((len(z), len(self.output_names)))


def _read_mean(header: model_file.Header, arrays: model_file.Arrays) -> FittedMean:
    fields = model_file.common_fields(header)
    trained = model_file.fill_template(
        {"residual_std": model_file.blank_array(len(fields.preprocessor.output_names))}, arrays
    )
    return FittedMean(*fields, check_residual_std(trained["residual_std"]))


model_file.register_format(
    model_file.ModelFormat("Mean", FittedMean, lambda model: ({}, {"residual_std": model.residual_std}), _read_mean)
)
