"""A trained ARX model."""

from dataclasses import dataclass

from revarb.gp.layer import Linear
from revarb.models.by_residuals import FittedNarx


@dataclass(frozen=True, eq=False, repr=False)
class FittedARX(FittedNarx[Linear]):
    """A trained ARX model of z-scored values; `order` is the chosen one. Its band is that of the training tail.

    Attributes
    ----------
    residual_std : array [outputs]
        Standard deviation of the held-out errors, z-scored.
    model : Linear
        Coefficients [regressors, outputs] and offset, z-scored.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(60.0) ** 1.5)
    >>> y = np.tanh(np.convolve(u, [0.0, 1.0, 0.5])[:60])
    >>> model = revarb.ARX(lags=2, input_lags=2).fit(revarb.Series(u, y))
    >>> model
    FittedARX(inputs ('u',), outputs ('y',), status='converged')
    >>> model.simulate(u)
    Trajectory(60 rows, outputs ('y',), method='residuals', start='cold')
    """
