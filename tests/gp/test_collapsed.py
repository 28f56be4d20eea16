"""The collapsed bound of one layer and the exact GP against dense formulas; test_layer.py has uncertain regressors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from revarb.gp.collapsed import Sums, collapsed_bound, inducing_terms
from revarb.gp.layer import Gaussians, Targets
from revarb.gp.posterior import exact_posterior, log_evidence, predict_certain
from support import oracles
from support.chains import make_layer

TINY = 1e-12
bound_of = jax.jit(collapsed_bound, static_argnames="jitter")


@pytest.fixture
def problem(rng):
    x = rng.normal(size=(15, 3))
    y = np.stack([np.sin(x[:, 0]) + 0.3 * x[:, 1], np.cos(x[:, 2])], axis=1) + 0.1 * rng.normal(size=(15, 2))
    w, variance, sigma2 = np.array([0.6, 0.4, 0.8]), 1.3, 0.07
    return x, y, w, variance, sigma2


def test_bound_without_uncertainty_is_titsias_dense_formula(problem, rng):
    x, y, w, variance, sigma2 = problem
    zeta = rng.normal(size=(6, 3))
    layer = make_layer(zeta, w, variance, sigma2)
    got = float(bound_of(layer, Gaussians(x, np.zeros_like(x)), Targets(y, 0.0), jitter=TINY))
    cross, K = oracles.rbf(x, zeta, w, variance), oracles.rbf(zeta, zeta, w, variance)
    nystrom = cross @ np.linalg.solve(K, cross.T)
    expected = oracles.log_gaussian(y, nystrom + sigma2 * np.eye(15))
    expected -= 0.5 * y.shape[1] * (15 * variance - np.trace(nystrom)) / sigma2
    assert got == pytest.approx(expected, rel=1e-8)


def test_the_exact_gp_is_that_of_the_textbook(problem, rng):
    x, y, w, variance, sigma2 = problem
    layer, new = make_layer(x, w, variance, sigma2), rng.normal(size=(6, 3))
    cov = oracles.rbf(x, x, w, variance) + sigma2 * np.eye(15)
    assert log_evidence(layer, y) == pytest.approx(oracles.log_gaussian(y, cov), rel=1e-10)
    mean, spread = predict_certain(exact_posterior(layer, y), new)
    cross = oracles.rbf(new, x, w, variance)
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(cov, y), atol=1e-10)
    np.testing.assert_allclose(spread, variance - np.diag(cross @ np.linalg.solve(cov, cross.T)), atol=1e-10)


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_derivative_by_hand_is_that_of_the_dense_formula(rng, outputs):
    """Eq. 21a against automatic differentiation of determinants and inverses."""
    size = 5
    x, v, sigma2 = rng.normal(size=(9, size)), rng.normal(size=(size, outputs)), np.array(0.3)
    psi2, K = x.T @ x, np.eye(size) + 0.1 * x[:size] @ x[:size].T

    def dense(K, sums, sigma2):
        P = K + sums.psi2 / sigma2
        determinants = jnp.linalg.slogdet(P)[1] - jnp.linalg.slogdet(K)[1]
        half = outputs * (jnp.trace(jnp.linalg.solve(K, sums.psi2)) / sigma2 - determinants)
        return 0.5 * (half + jnp.sum(sums.projected * jnp.linalg.solve(P, sums.projected)) / sigma2**2)

    got, slopes = jax.value_and_grad(inducing_terms, argnums=(0, 1, 2))(K, Sums(v, psi2), sigma2)
    expected, dense_slopes = jax.value_and_grad(dense, argnums=(0, 1, 2))(K, Sums(v, psi2), sigma2)
    assert float(got) == pytest.approx(float(expected), rel=1e-12)
    for a, b in zip(jax.tree.leaves(slopes), jax.tree.leaves(dense_slopes), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
