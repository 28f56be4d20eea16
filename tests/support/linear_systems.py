"""Linear systems with known coefficients: records, models with the true coefficients, and a dense Gaussian."""

from typing import NamedTuple

import numpy as np

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.gp.layer import Linear
from revarb.models.fitted_arx import FittedARX
from revarb.models.recipe import Status


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


class LinearSystem(NamedTuple):
    """A state-space model with one state as a dense Gaussian: the oracle of GP state-space models.

    x_0 ~ N(0, 1), x_t = a x_{t−1} + b u_t + N(0, q), y_t = x_t + N(0, r).
    """

    a: float
    b: float
    q: float
    r: float

    def joint(self, u):
        """Mean and covariance of all states before any measurement."""
        count = len(u)
        # x = step x + drive, with the first state free.
        step = self.a * np.eye(count, k=-1)
        inverse = np.linalg.inv(np.eye(count) - step)
        drive = np.concatenate([[0.0], self.b * u[1:]])
        variances = np.concatenate([[1.0], np.full(count - 1, self.q)])
        return inverse @ drive, inverse @ np.diag(variances) @ inverse.T

    def log_evidence(self, u, y):
        mean, cov = self.joint(u)
        cov = cov + self.r * np.eye(len(u))
        error = y - mean
        return -0.5 * (error @ np.linalg.solve(cov, error) + np.linalg.slogdet(2.0 * np.pi * cov)[1])

    def posterior(self, u, y):
        """Mean and covariance of all states given all measurements."""
        mean, cov = self.joint(u)
        gain = np.linalg.solve(cov + self.r * np.eye(len(u)), cov).T
        return mean + gain @ (y - mean), cov - gain @ cov

    def simulate(self, u, rng):
        mean, cov = self.joint(u)
        return rng.multivariate_normal(mean, cov) + np.sqrt(self.r) * rng.standard_normal(len(u))
