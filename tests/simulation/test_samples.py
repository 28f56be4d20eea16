"""Sampled trajectories against draws by a plain loop; test_linear_chain.py has one step of a trained chain."""

import jax
import numpy as np

from revarb.simulation.chain import Chain, StartState
from revarb.simulation.samples import run_samples
from support.chains import exact_layer, make_layer, monte_carlo


def conditional_loop(layer, start, steps, count, rng):
    """Trajectories of one lag by a plain loop: f at a new regressor is drawn given f at all regressors before."""

    zeta = np.broadcast_to(layer.zeta[:, 0], (count, len(layer.zeta)))

    def kernel(a, b):
        return layer.variance * np.exp(-0.5 * layer.w[0] * (a[:, :, None] - b[:, None, :]) ** 2)

    def covariance(a, b):
        return kernel(a, b) - kernel(a, zeta) @ layer.reduction @ kernel(zeta, b)

    y = rng.normal(start.mean, np.sqrt(start.cov[0]), size=(count, 1))
    visited, residuals, rows = np.empty((count, 0)), np.empty((count, 0)), []
    for _ in range(steps):
        known = covariance(visited, visited) + 1e-9 * np.eye(visited.shape[1])
        weights = np.linalg.solve(known, covariance(visited, y))[:, :, 0]
        mean = np.sum(weights * residuals, axis=1)
        variance = covariance(y, y)[:, 0, 0] - np.sum(weights * covariance(visited, y)[:, :, 0], axis=1)
        residual = mean + np.sqrt(np.maximum(variance, 0.0)) * rng.normal(size=count)
        visited, residuals = np.hstack([visited, y]), np.hstack([residuals, residual[:, None]])
        y = np.asarray(layer.mean(y)) + residual[:, None] + np.sqrt(layer.sigma2) * rng.normal(size=(count, 1))
        rows.append(y)
    return np.stack(rows, axis=1)


def test_every_trajectory_keeps_its_function(rng):
    """Agrees with draws conditioned on all earlier values, and differs from independent draws at every step."""
    x = np.array([[-2.0], [0.5], [2.0]])
    layer = exact_layer(make_layer(x, np.array([0.3]), 1.0, 0.02), 0.9 * x)
    chain, start = Chain((layer,), None, 1), StartState(np.array([1.2]), np.array([[0.01]]), np.zeros((0, 0)))
    count, steps = 4000, 8
    _, drawn = run_samples(chain, start, np.zeros((steps, 0)), jax.random.key(0), count)
    expected = conditional_loop(layer, start, steps, count, rng)
    np.testing.assert_allclose(np.mean(drawn, axis=0), expected.mean(0), atol=5.0 * expected.std() / np.sqrt(count))
    np.testing.assert_allclose(np.std(drawn, axis=0), expected.std(0), rtol=0.06)
    independent = monte_carlo(chain, start, np.zeros((steps, 0)), count, rng)
    assert np.abs(independent.std(0) / expected.std(0) - 1.0).max() > 0.12
