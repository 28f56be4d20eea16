"""f of a reduced-rank GP-SSM: Laplace eigenfunctions, the regression on them, and hyperparameters on a grid."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from revarb.baselines.state_space import basis_regression
from revarb.baselines.state_space.basis_regression import (
    Hyperparameters,
    LaplaceBasis,
    collect_statistics,
    compute_features,
    list_numbers,
    make_weight_prior,
    update_weights,
)
from support import oracles


def test_functions_are_orthonormal_on_the_box_and_vanish_at_its_border():
    basis = LaplaceBasis.build(np.array([2.0, 0.7]), 12)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    points = np.array(list(itertools.product(2.0 * nodes, 0.7 * nodes)))
    areas = np.outer(2.0 * weights, 0.7 * weights).ravel()
    values = np.asarray(basis.evaluate(points))
    np.testing.assert_allclose(values.T @ (areas[:, None] * values), np.eye(12), atol=1e-10)
    border = np.array([[2.0, 0.3], [-2.0, 0.1], [0.4, 0.7], [1.0, -0.7]])
    np.testing.assert_allclose(basis.evaluate(border), 0.0, atol=1e-13)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_the_smoothest_products_are_taken(dimensions):
    every = list(itertools.product(range(1, 13), repeat=dimensions))
    half_width = np.array([1.0, 2.0, 0.8])[:dimensions]
    sums = sorted(np.sum((np.array(numbers) / half_width) ** 2) for numbers in every)
    taken = list_numbers(half_width, 12)
    assert len({tuple(numbers) for numbers in taken}) == 12
    np.testing.assert_allclose(np.sum((taken / half_width) ** 2, axis=1), sums[:12])


def test_the_kernel_is_close_to_rbf_inside(rng):
    """The error is that of the border and of the functions that are left out: both are small here."""
    lengths, basis = np.array([0.8, 1.1]), LaplaceBasis.build(np.array([4.0, 4.0]), 250)
    points = rng.uniform(-1.5, 1.5, size=(20, 2))
    values = np.asarray(basis.evaluate(points))
    ours = values @ np.diag(np.asarray(basis.spectral_density(lengths))) @ values.T
    np.testing.assert_allclose(ours, oracles.rbf(points, points, 1.0 / lengths**2, 1.0), atol=2e-3)


def test_outputs_in_front_of_the_hidden_states_have_no_influence(rng):
    basis = LaplaceBasis.build(np.array([3.0, 2.0]), 5)  # one hidden state and one input
    hidden, inputs = rng.normal(size=(2, 7, 1))
    alone = compute_features(basis, hidden, inputs)
    behind = compute_features(basis, np.hstack([rng.normal(size=(7, 2)), hidden]), inputs)
    np.testing.assert_allclose(alone, behind, rtol=1e-12, atol=1e-13)


SCALE = np.array([[0.5, 0.1], [0.1, 0.3]])


@pytest.fixture
def regression(rng):
    features = rng.normal(size=(30, 4))
    x = features @ rng.normal(size=(4, 2)) + 0.3 * rng.normal(size=(30, 2))
    return x, features


def fit(x, features, variances, scale=SCALE):
    prior = basis_regression.WeightPrior(variances, np.array(5.0), scale)
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
    flat = fit(x, features, np.full(4, 1e10))
    np.testing.assert_allclose(flat.mean, np.linalg.lstsq(features, x, rcond=None)[0].T, atol=1e-8)
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


def test_draws_have_the_moments_of_the_posterior(regression):
    posterior = fit(*regression, np.full(4, 1.0))
    weights, Q = jax.vmap(posterior.draw)(jax.random.split(jax.random.key(0), 40000))
    noise = stats.invwishart(35.0, np.asarray(posterior.scale))
    expected = noise.mean()
    np.testing.assert_allclose(np.mean(Q, axis=0), expected, atol=0.001)
    np.testing.assert_allclose(np.var(Q, axis=0), noise.var(), rtol=0.05)
    np.testing.assert_allclose(np.mean(weights, axis=0), posterior.mean, atol=0.003)
    cov = np.cov(np.asarray(weights).reshape(-1, 8).T)
    right = posterior.root.T @ posterior.root
    np.testing.assert_allclose(cov, np.kron(expected, right), atol=0.03 * np.abs(np.kron(expected, right)).max())


BASIS = LaplaceBasis.build(np.array([3.0]), 8)
PROCESS = 0.01 * np.eye(1)


def draw_statistics(rng):
    x = rng.uniform(-2.0, 2.0, (40, 1))
    targets = np.sin(2.0 * x) + 0.1 * rng.normal(size=x.shape)
    return collect_statistics(targets, compute_features(BASIS, x, np.empty((40, 0))), np.ones(40))


def integrate_on_a_grid(statistics):
    """Posterior mean and standard deviation of both logarithms."""
    signals, lengths = np.linspace(-8.0, 22.0, 121), np.linspace(-2.0, 2.0, 121)

    def log_evidence(signal, length):
        prior = make_weight_prior(Hyperparameters(signal, length[None]), BASIS, PROCESS)
        return update_weights(prior, statistics).log_evidence

    evidence = jax.vmap(lambda signal: jax.vmap(lambda length: log_evidence(signal, length))(lengths))(signals)
    evidence += stats.norm.logpdf(signals, basis_regression.LOG_SIGNAL_MEAN, basis_regression.LOG_SIGNAL_STD)[:, None]
    evidence += stats.norm.logpdf(lengths, basis_regression.LOG_LENGTH_MEAN, basis_regression.LOG_LENGTH_STD)
    weights = np.asarray(jax.nn.softmax(evidence.ravel())).reshape(evidence.shape)
    return [stats.rv_discrete(values=each) for each in ((signals, weights.sum(axis=1)), (lengths, weights.sum(axis=0)))]


@pytest.mark.slow
def test_the_steps_sample_the_posterior_of_the_hyperparameters(rng):
    statistics = draw_statistics(rng)

    def step(now, key):
        new, _ = basis_regression.step_hyperparameters(key, now, BASIS, PROCESS, statistics)
        return new, new

    first = Hyperparameters(jnp.array(basis_regression.LOG_SIGNAL_MEAN), jnp.full(1, basis_regression.LOG_LENGTH_MEAN))
    draws = jax.jit(lambda: jax.lax.scan(step, first, jax.random.split(jax.random.key(0), 30_000))[1])()
    signal, length = integrate_on_a_grid(statistics)
    for drawn, exact, tolerance in ((draws.log_signal, signal, 0.3), (draws.log_lengths, length, 0.05)):
        found = drawn[1000:].mean(), drawn[1000:].std()
        np.testing.assert_allclose(found, (exact.mean(), exact.std()), atol=tolerance)


def test_the_posterior_belongs_to_the_hyperparameters(rng):
    statistics, first = draw_statistics(rng), Hyperparameters(np.array(3.0), np.zeros(1))
    for key in jax.random.split(jax.random.key(1), 5):
        new, posterior = basis_regression.step_hyperparameters(key, first, BASIS, PROCESS, statistics)
        expected = update_weights(make_weight_prior(new, BASIS, PROCESS), statistics)
        np.testing.assert_allclose(posterior.mean, expected.mean, rtol=1e-8)
