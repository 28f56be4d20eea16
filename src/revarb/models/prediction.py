"""What models that predict share: checks of the arguments, the name of a horizon, and the analysis of residuals."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxtyping import Float

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.windows import input_windows_after
from revarb.errors import InputError, check_integer
from revarb.models.base import Fitted
from revarb.models.residual_analysis import analyse_residuals
from revarb.models.residuals import Residuals
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.starts import make_cold_origin

MAX_HORIZON = 10**9  # steps ahead; more than any record has


@dataclass(frozen=True, eq=False, repr=False)
class Predictor(Fitted):
    """A trained model that predicts along measured records, and so has residuals."""

    @abstractmethod
    def predict(self, record: Series, horizon: int = 1) -> Trajectory:
        """Predict every sample of a measured record from the samples up to `horizon` before it, raw units.

        Parameters
        ----------
        record : Series
            Measured inputs and outputs; missing outputs are NaN.
        horizon : int
            Number of samples ahead.

        Returns
        -------
        Trajectory
            One row per sample of the record.
        """

    def residuals(self, record: Series, max_lag: int | None = None) -> Residuals:
        """Errors one step ahead along a measured record, and what is left in them: residual analysis.

        Parameters
        ----------
        record : Series
            Measured inputs and outputs, best those of a record that the model was not trained on. Missing outputs, the
            values right after them and the first `skip` rows are left out.
        max_lag : int, optional
            Largest lag of the correlations; default: 25, or ten more than the oldest input of the model, but at most
            a quarter of the rows.

        Returns
        -------
        Residuals
            Errors, correlations with their bands, and `sentence`, which says what was found and what to do.

        Raises
        ------
        InputError
            If the record does not fit the model, or has too few measured outputs.
        ComputationError
            If the prediction diverges.

        Examples
        --------
        >>> import numpy as np, revarb
        >>> rng = np.random.default_rng(0)
        >>> u, noise = rng.normal(size=400), 0.1 * rng.normal(size=400)
        >>> record = revarb.Series(u, np.convolve(u, [0.0, 1.0, 0.5])[:400] + noise)
        >>> model = revarb.ARX(lags=1, input_lags=2).fit(record[:300])
        >>> model.residuals(record[300:]).sentence
        'nothing is left in the residuals'
        """
        return analyse_residuals(record, self.predict(record), self.order, max_lag)


def check_prediction(record: Any, horizon: Any) -> int:
    """Check the arguments of `predict`; return the horizon as an int."""
    steps = check_integer("horizon", horizon, least=1, most=MAX_HORIZON)
    if not isinstance(record, Series):
        raise InputError(f"predict takes a measured revarb.Series(u, y), received a {type(record).__name__}")
    return steps


class MeasuredRows(NamedTuple):
    """A measured record as a prediction needs it, z-scored, and the cold start before it."""

    start: StartState
    u_bar: Float[AnyArray, "T Du"]
    y: Float[AnyArray, "T Dy"]


def align_record(prep: Preprocessor, chain: Chain, record: Series) -> MeasuredRows:
    """The rows of a record that has the model's columns, with the inputs before it at their training mean."""
    z, y = prep.check_window(record)
    cold = make_cold_origin(prep, chain).state
    return MeasuredRows(cold, input_windows_after(cold.past_u, z, prep.order), y)


def name_horizon(horizon: int) -> str:
    """The name that `Trajectory.start` has for a prediction."""
    return f"{horizon} step{'s' * (horizon > 1)} ahead"
