"""Kernel and linear part of a layer, f(x̂) = A x̂ + b + GP, against loops, quadrature, the exact GP, and zeros."""

import jax
import numpy as np
import pytest

from revarb.gp.collapsed import collapsed_bound, sum_rows
from revarb.gp.layer import Gaussians, Linear, Targets, inverse_softplus, rbf, select_outputs, subtract_linear
from revarb.gp.pathwise import draw_functions
from revarb.gp.posterior import (
    PosteriorMean,
    compute_known_part,
    compute_posterior,
    compute_posterior_mean,
    exact_posterior,
    join_output_groups,
    log_evidence,
    predict_certain,
    predict_gaussian,
    split_posterior,
)
from support import oracles
from support.chains import compiled_posterior, make_layer
from support.random_models import add_linear

TINY = 1e-12
bound_of = jax.jit(collapsed_bound, static_argnames="jitter")
predict = jax.jit(predict_certain)
W, VARIANCE, SIGMA2 = np.array([0.6, 0.4, 0.8]), 1.3, 0.07


@jax.jit
def sum_of(layer, x_hat, y):
    """Sums over rows of what the linear part leaves over."""
    return sum_rows(layer, x_hat, subtract_linear(layer.linear, x_hat, Targets(y, 0.0)).mean)


@pytest.fixture
def linear(rng):
    """Two outputs of three regressors."""
    return Linear(rng.normal(size=(3, 2)), rng.normal(size=2))


@pytest.fixture
def x_hat(rng):
    """Six rows; the first two regressors are uncertain, the last one is known; two rows have no measured target."""
    weights = np.array([1.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    return Gaussians(rng.normal(size=(6, 3)), rng.uniform(0.05, 0.8, size=(6, 2)), weights)


@pytest.fixture
def y(rng, x_hat):
    return rng.normal(size=(6, 2)) * (x_hat.weights > 0)[:, None]


def test_rbf_equals_a_double_loop(rng):
    a, b, w = rng.normal(size=(6, 3)), rng.normal(size=(4, 3)), rng.uniform(0.1, 3.0, size=3)
    np.testing.assert_allclose(rbf(a, b, w, np.array(2.5)), oracles.rbf(a, b, w, 2.5), rtol=1e-12)
    far = 100.0 * a
    np.testing.assert_allclose(np.diag(rbf(far, far, w, np.array(0.7))), 0.7, rtol=1e-9)


def test_softplus_and_its_inverse():
    for value in (1e-8, 0.05, 1.0, 40.0):
        assert np.log1p(np.exp(inverse_softplus(value))) == pytest.approx(value, rel=1e-9)


def expect(function, x_hat, i):
    """E[function(x̂)] of row i by quadrature over its uncertain regressors."""
    known = x_hat.mean[i, 2:]
    return oracles.gaussian_expectation(
        lambda x: function(np.concatenate([x, known])), x_hat.mean[i, :2], np.diag(x_hat.variance[i]), points=20
    )


@pytest.mark.parametrize("has_linear", [False, True])
def test_bound_is_the_uncollapsed_one_by_quadrature(rng, linear, x_hat, y, has_linear):
    """E_q[log p(y | f)] − KL(q(z) ‖ p(z)) at the best q(z), all expectations by quadrature; others are worse.

    With a linear part it contains the residuals of Eq. 46 and their projection of Eq. 47.
    """
    zeta, rows, target_variance = rng.normal(size=(3, 3)), np.flatnonzero(x_hat.weights), 0.8
    layer = make_layer(zeta, W, VARIANCE, SIGMA2, linear if has_linear else None)
    got = float(bound_of(layer, x_hat, Targets(y, target_variance), TINY))
    K = oracles.rbf(zeta, zeta, W, VARIANCE)
    inverse = np.linalg.inv(K)

    def statistics(x, i):
        k, rest = oracles.rbf(x[None], zeta, W, VARIANCE)[0], y[i]
        rest = rest - x @ linear.coefficients - linear.offset if has_linear else rest
        return np.concatenate([np.outer(k, k).ravel(), np.outer(k, rest).ravel(), [rest @ rest]])

    total = sum(expect(lambda x, i=i: statistics(x, i), x_hat, i) for i in rows)
    squares, products, rest = total[:9].reshape(3, 3), total[9:15].reshape(3, 2), total[15]

    def value(mean, cov):
        """Σ E[(y − A x̂ − b − k K⁻¹z)² + variance of f given z] / −2σ² and the rest, written out."""
        bound = -0.5 * len(rows) * 2 * np.log(2.0 * np.pi * SIGMA2)
        error = rest + target_variance - 2.0 * np.sum(products * (inverse @ mean))
        for m in mean.T:
            error += np.trace(inverse @ squares @ inverse @ (cov + np.outer(m, m)))
            error += len(rows) * VARIANCE - np.trace(inverse @ squares)
            bound -= 0.5 * (np.trace(inverse @ cov) + m @ inverse @ m - len(m))
            bound -= 0.5 * (np.linalg.slogdet(K)[1] - np.linalg.slogdet(cov)[1])
        return bound - 0.5 * error / SIGMA2

    best = np.linalg.inv(K + squares / SIGMA2)
    mean, cov = K @ best @ products / SIGMA2, K @ best @ K
    assert got == pytest.approx(value(mean, cov), rel=1e-8)
    assert value(mean + 0.05 * rng.normal(size=mean.shape), cov) < got
    assert value(mean, 1.2 * cov) < got


@pytest.mark.parametrize("variance", [None, 0.0, 1e-9], ids=["known", "zero", "small"])
def test_limit_of_an_exact_gp_on_the_residuals(rng, linear, variance):
    """λ → 0 and inducing inputs at the rows: evidence and predictions of the exact GP of y − A x − b."""
    x = rng.normal(size=(12, 3))
    y = np.stack([np.sin(x[:, 0]), np.cos(x[:, 2])], axis=1) + x @ linear.coefficients + linear.offset
    layer, rest = make_layer(x, W, VARIANCE, SIGMA2, linear), y - np.asarray(linear.mean(x))
    certain = Gaussians(x, None if variance is None else np.full_like(x, variance))
    bound = bound_of(layer, certain, Targets(y, 0.0), TINY)
    assert float(bound) == pytest.approx(float(jax.jit(log_evidence)(layer, rest)), abs=1e-4)
    new = rng.normal(size=(5, 3))
    mean, spread = predict(compiled_posterior(layer, certain, y, TINY), new)
    expected, expected_spread = predict(jax.jit(exact_posterior)(layer, rest), new)
    np.testing.assert_allclose(mean, expected + linear.mean(new), atol=1e-5)
    np.testing.assert_allclose(spread, expected_spread, atol=1e-5)


@pytest.mark.parametrize("rows", ["uncertain", "known"])
def test_zeros_give_the_layer_without_a_linear_part(rng, x_hat, y, rows):
    changes = {"uncertain": {}, "known": {"variance": None, "weights": None}}
    plain = make_layer(rng.normal(size=(4, 3)), W, VARIANCE, SIGMA2)
    zeros = add_linear(plain, Linear(np.zeros((3, 2)), np.zeros(2)))
    values = [compute_all(layer, x_hat._replace(**changes[rows]), y) for layer in (plain, zeros)]
    for without, with_zeros in zip(*values, strict=True):
        np.testing.assert_allclose(with_zeros, without, rtol=1e-9, atol=1e-12)  # two programs, each with its rounding


@jax.jit
def compute_all(layer, x_hat, y):
    """The bound, β, G, and every kind of prediction."""
    trained = compute_posterior(layer, x_hat, y, 1e-6)
    x = np.array([[0.3, -0.2, 0.1], [1.5, 0.4, -0.7]])
    known = jax.tree.map(lambda part: part[0], compute_known_part(trained, x[:1, 2:]))
    gaussian = predict_gaussian(split_posterior(trained, 2), x[0, :2], np.array([[0.3, 0.1], [0.1, 0.2]]), known)
    bound = collapsed_bound(layer, x_hat, Targets(y, 0.4), 1e-6)
    return [bound, trained.beta, trained.reduction, *predict_certain(trained, x), *gaussian]


@pytest.mark.parametrize("apart", [False, True], ids=["outputs together", "outputs with their own gaps"])
def test_prediction_at_a_gaussian_agrees_with_quadrature(rng, linear, x_hat, y, apart):
    """Eq. 48: mean, covariance between outputs and covariance with the regressor; the last regressor is known."""
    layer = make_layer(rng.normal(size=(4, 3)), W, VARIANCE, SIGMA2, linear)
    trained = compute_groups(layer, x_hat, y) if apart else compiled_posterior(layer, x_hat, y, TINY)
    mean, known, cov = np.array([0.2, -0.4]), np.array([0.3]), np.array([[0.30, 0.18], [0.18, 0.25]])
    part = jax.tree.map(lambda values: values[0], compute_known_part(trained, known[None]))
    got = jax.jit(lambda layer: predict_gaussian(split_posterior(layer, 2), mean, cov, part))(trained)

    def moments(point):
        f, spread = (np.asarray(value[0]) for value in predict(trained, np.concatenate([point, known])[None]))
        second = np.outer(f, f) + spread * np.eye(2)
        return np.concatenate([f, second.ravel(), np.outer(point, f).ravel()])

    expected = oracles.gaussian_expectation(moments, mean, cov, points=25)
    f_mean, second, with_point = expected[:2], expected[2:6].reshape(2, 2), expected[6:].reshape(2, 2)
    np.testing.assert_allclose(got.mean, f_mean, atol=1e-9)
    np.testing.assert_allclose(got.cov, second - np.outer(f_mean, f_mean), atol=1e-9)
    np.testing.assert_allclose(cov @ got.gain, with_point - np.outer(mean, f_mean), atol=1e-9)


def compute_groups(layer, x_hat, y):
    """The joined posterior of two outputs: the second one was measured in half of the rows only, and comes first."""
    masks = [x_hat.weights * (np.arange(6) < 3), x_hat.weights]
    parts = []
    for column, mask in zip((1, 0), masks, strict=True):
        part, targets = select_outputs(layer, np.array([column])), y[:, [column]] * mask[:, None]
        parts.append(compiled_posterior(part, x_hat._replace(weights=mask), targets, TINY))
    return join_output_groups(parts, [(1,), (0,)])


def test_the_mean_alone_is_that_of_the_posterior(rng, linear, x_hat, y):
    layer = make_layer(rng.normal(size=(4, 3)), W, VARIANCE, SIGMA2, linear)
    sums = sum_of(layer, x_hat, y)
    mean, new = jax.jit(compute_posterior_mean, static_argnums=2)(layer, sums, 1e-6), rng.normal(size=(5, 3))
    assert isinstance(mean, PosteriorMean) and mean.outputs == 2
    np.testing.assert_allclose(mean.mean(new), compiled_posterior(layer, x_hat, y, 1e-6).mean(new), rtol=1e-12)


def test_all_draws_share_the_linear_part(rng, linear, x_hat, y):
    """The same draws without it differ by A x + b."""
    trained = compiled_posterior(make_layer(rng.normal(size=(4, 3)), W, VARIANCE, SIGMA2, linear), x_hat, y, 1e-6)
    x = rng.normal(size=(7, 3))
    drawn = jax.jit(lambda layer: draw_functions(layer, jax.random.key(3), 7, features=8))(trained)
    gp_part = add_linear(drawn, None).evaluate(x)
    np.testing.assert_allclose(drawn.evaluate(x), gp_part + linear.mean(x), rtol=1e-12, atol=1e-13)
