"""A linear Gaussian state-space model with one state as a dense Gaussian: the oracle of GP state-space models.

x_0 ~ N(0, 1), x_t = a x_{t−1} + b u_t + N(0, q), y_t = x_t + N(0, r).
"""

from typing import NamedTuple

import numpy as np


class LinearSystem(NamedTuple):
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
