"""Predictions of a sparse layer against the exact GP and quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from revarb.gp.layer import Gaussians
from revarb.gp.posterior import (
    compute_known_part,
    compute_posterior,
    predict_certain,
    predict_gaussian,
    split_posterior,
)
from support import oracles
from support.chains import make_layer

TINY = 1e-12


@pytest.fixture
def problem(rng):
    x = rng.normal(size=(15, 3))
    y = np.stack([np.sin(x[:, 0]) + 0.3 * x[:, 1], np.cos(x[:, 2])], axis=1) + 0.1 * rng.normal(size=(15, 2))
    w, variance, sigma2 = np.array([0.6, 0.4, 0.8]), 1.3, 0.07
    return x, y, w, variance, sigma2


def exact_prediction(x, y, w, variance, sigma2, new):
    K = oracles.rbf(x, x, w, variance) + sigma2 * np.eye(len(x))
    cross = oracles.rbf(new, x, w, variance)
    return cross @ np.linalg.solve(K, y), variance - np.sum(cross * np.linalg.solve(K, cross.T).T, axis=1)


def test_prediction_with_inducing_inputs_at_the_data_is_the_exact_gp(problem, rng):
    x, y, w, variance, sigma2 = problem
    new = rng.normal(size=(8, 3))
    trained = compute_posterior(make_layer(x, w, variance, sigma2), Gaussians(x, np.zeros_like(x)), y, TINY)
    mean, spread = predict_certain(trained, new)
    expected_mean, expected_spread = exact_prediction(*problem, new)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-6)
    np.testing.assert_allclose(spread, expected_spread, atol=1e-6)


def test_prediction_at_a_gaussian_agrees_with_quadrature(problem, rng):
    """Mean, covariance between outputs and covariance with the regressor, against E[·] by quadrature."""
    x, y, w, variance, sigma2 = problem
    trained = compute_posterior(make_layer(x[:7], w, variance, sigma2), Gaussians(x, np.zeros_like(x)), y, TINY)
    mean, known = np.array([0.2, -0.4]), np.array([0.3])
    cov = np.array([[0.30, 0.18], [0.18, 0.25]])
    got = predict_gaussian(
        split_posterior(trained, 2),
        mean,
        cov,
        jax.tree.map(lambda part: part[0], compute_known_part(trained, known[None])),
    )

    predict = jax.jit(predict_certain)

    def moments(point):
        f, spread = predict(trained, np.concatenate([point, known])[None])
        f = np.asarray(f[0])
        second = np.outer(f, f) + float(spread[0]) * np.eye(2)
        return np.concatenate([f, second.ravel(), np.outer(point, f).ravel()])

    expected = oracles.gaussian_expectation(moments, mean, cov, points=25)
    f_mean, second, with_point = expected[:2], expected[2:6].reshape(2, 2), expected[6:].reshape(2, 2)
    np.testing.assert_allclose(got.mean, f_mean, atol=1e-7)
    np.testing.assert_allclose(got.cov, second - np.outer(f_mean, f_mean), atol=1e-7)
    np.testing.assert_allclose(cov @ got.gain, with_point - np.outer(mean, f_mean), atol=1e-7)


def test_far_from_the_data_the_posterior_is_the_prior(problem):
    x, y, w, variance, sigma2 = problem
    trained = compute_posterior(make_layer(x, w, variance, sigma2), Gaussians(x, np.zeros_like(x)), y, 1e-6)
    mean, spread = predict_certain(trained, np.full((1, 3), 1e3))
    np.testing.assert_allclose(mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(spread, variance)
    assert jnp.all(spread >= 0)
