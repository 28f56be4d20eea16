"""ARX: linear autoregression with inputs, by least squares."""

from collections.abc import Sequence
from dataclasses import dataclass

from revarb.data.series import Series, as_records
from revarb.errors import check_seed
from revarb.fitting.linear_model import fit_linear
from revarb.models.configuration import Lagged
from revarb.models.fitted_arx import FittedARX
from revarb.runtime.numerics import with_numerics


@dataclass(frozen=True)
class ARX(Lagged):
    """Linear autoregression with inputs (ARX), its order chosen on the training records.

    Parameters
    ----------
    lags : int
        The largest number of past outputs that is tried; less on a short record.
    input_lags : int
        The largest number of past inputs that is tried; less on a short record.
    input_delay : int
        Age of the newest input: 1 by default, 0 for direct feedthrough, k for a dead time of k samples.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.convolve(u, [0.0, 0.5, 0.3])[:60]
    >>> model = revarb.ARX(lags=2, input_lags=3).fit(revarb.Series(u, y))
    >>> model.order.input_lags
    2
    >>> bool(np.allclose(model.simulate(u).mean[5:, 0], y[5:]))
    True
    """

    @with_numerics
    def fit(self, train: Series | Sequence[Series], seed: int = 0, progress: bool = False) -> "FittedARX":
        """Fit every order by least squares to the first part of the records; keep the one that simulates the rest best.

        The chosen order is then fitted to all training rows.

        Parameters
        ----------
        train : Series or list of Series
            The training records. Rows with a missing output, as target or as regressor, are left out.
        seed : int
            Not used: nothing is random.
        progress : bool
            Not used.

        Returns
        -------
        FittedARX

        Raises
        ------
        InputError
            If the records are too short, or no row is complete.
        ComputationError
            If the simulations of all orders diverge.
        """
        seed, records = check_seed(seed), as_records(train)
        fitted = fit_linear(records, self.order_for(records[0].u.shape[1]))
        return FittedARX.from_records(records, fitted.preprocessor, fitted.model, fitted.residual_std, seed)
