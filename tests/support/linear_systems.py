"""Linear systems with known coefficients: records of them, and models with the true coefficients."""

import numpy as np

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.gp.layer import Linear
from revarb.models.fitted_arx import FittedARX
from revarb.models.status import Status


def arx_record(seed, samples, noise=0.02, delay=1):
    """y[k] = 1.2 y[k−1] − 0.5 y[k−2] + u[k−delay], and noise in the equation."""
    rng = np.random.default_rng(seed)
    u, y = rng.normal(size=samples), np.zeros(samples)
    for k in range(2, samples):
        y[k] = 1.2 * y[k - 1] - 0.5 * y[k - 2] + noise * rng.normal()
        y[k] += u[k - delay] if k >= delay else 0.0
    return Series(u, y)


def first_order_record(feedback, u):
    """y[k] = feedback · y[k−1] + u[k−1]."""
    y = np.zeros(len(u))
    for k in range(1, len(u)):
        y[k] = feedback * y[k - 1] + u[k - 1]
    return Series(u, y)


def first_order_model(feedback, record):
    """The model with this feedback and gain 1 in raw units, scaled by the record."""
    prep = Preprocessor.from_records([record], Order(1, 1, 1))
    gain = prep.scaling.u_std / prep.scaling.y_std
    offset = (prep.scaling.u_mean + (feedback - 1.0) * prep.scaling.y_mean) / prep.scaling.y_std
    return FittedARX(prep, Status.CONVERGED, 0, np.ones(1), Linear(np.array([[feedback], [gain[0]]]), offset))
