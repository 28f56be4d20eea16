"""Matrix-normal inverse-Wishart regression against dense formulas, SciPy's distributions and moments of draws."""

import jax
import numpy as np
import pytest
from scipy import stats

from revarb.baselines.state_space.matrix_normal import (
    WeightPrior,
    collect_statistics,
    draw_inverse_wishart,
    update_weights,
)

SCALE = np.array([[0.5, 0.1], [0.1, 0.3]])


@pytest.fixture
def regression(rng):
    features = rng.normal(size=(30, 4))
    x = features @ rng.normal(size=(4, 2)) + 0.3 * rng.normal(size=(30, 2))
    return x, features


def fit(x, features, variances, scale=SCALE):
    prior = WeightPrior(variances, np.array(5.0), scale)
    return update_weights(prior, collect_statistics(x, features, np.ones(len(x))))


def test_the_update_equals_dense_formulas(regression):
    x, features = regression
    variances = np.array([1.0, 0.1, 10.0, 2.0])
    posterior = fit(x, features, variances)
    V_inverse = np.diag(1.0 / variances)
    cov = np.linalg.inv(features.T @ features + V_inverse)
    mean = x.T @ features @ cov
    errors = x - features @ mean.T
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-10)
    np.testing.assert_allclose(posterior.root.T @ posterior.root, cov, atol=1e-12)
    np.testing.assert_allclose(posterior.scale, SCALE + errors.T @ errors + mean @ V_inverse @ mean.T, atol=1e-9)
    assert posterior.degrees == 35.0


def test_flat_and_tight_priors_are_least_squares_and_zero(regression):
    x, features = regression
    np.testing.assert_allclose(
        fit(x, features, np.full(4, 1e10)).mean, np.linalg.lstsq(features, x, rcond=None)[0].T, atol=1e-8
    )
    tight = fit(x, features, np.full(4, 1e-300))
    np.testing.assert_allclose(tight.mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(tight.scale, SCALE + x.T @ x)


def test_the_evidence_is_that_of_a_multivariate_t(regression):
    """Of one output, up to a constant: compare two priors."""
    x, features = regression[0][:, :1], regression[1]

    def log_density(variances):
        shape = (np.eye(30) + features * variances @ features.T) * 0.4 / 5.0
        return stats.multivariate_t(np.zeros(30), shape, df=5.0).logpdf(x[:, 0])

    several = [np.array([1.0, 0.1, 10.0, 2.0]), np.array([0.2, 3.0, 1.0, 0.01])]
    ours = [float(fit(x, features, each, np.array([[0.4]])).log_evidence) for each in several]
    np.testing.assert_allclose(ours[0] - ours[1], log_density(several[0]) - log_density(several[1]), atol=1e-9)


def test_rows_that_do_not_count_are_left_out(regression):
    x, features = regression
    counted = (np.arange(30) % 3 > 0).astype(float)
    all_rows = collect_statistics(x, features, counted)
    kept = counted > 0
    for ours, theirs in zip(all_rows, collect_statistics(x[kept], features[kept], np.ones(20)), strict=True):
        np.testing.assert_allclose(ours, theirs)


@pytest.mark.slow
def test_inverse_wishart_draws_have_their_moments():
    degrees, keys = np.array(9.0), jax.random.split(jax.random.key(3), 40000)
    draws = np.asarray(jax.vmap(lambda key: draw_inverse_wishart(key, degrees, SCALE))(keys))
    theirs = stats.invwishart(9.0, SCALE)
    np.testing.assert_allclose(draws.mean(axis=0), theirs.mean(), rtol=0.03)
    np.testing.assert_allclose(draws.var(axis=0), theirs.var(), rtol=0.15)


def test_draws_have_the_moments_of_the_posterior(regression):
    posterior = fit(*regression, np.full(4, 1.0))
    weights, Q = jax.vmap(posterior.draw)(jax.random.split(jax.random.key(0), 40000))
    expected = np.asarray(posterior.scale) / (35.0 - 3.0)
    np.testing.assert_allclose(np.mean(Q, axis=0), expected, atol=0.001)
    np.testing.assert_allclose(np.mean(weights, axis=0), posterior.mean, atol=0.003)
    cov = np.cov(np.asarray(weights).reshape(-1, 8).T)
    right = posterior.root.T @ posterior.root
    np.testing.assert_allclose(cov, np.kron(expected, right), atol=0.03 * np.abs(np.kron(expected, right)).max())
