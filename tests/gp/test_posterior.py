"""The exact GP against dense matrices, and the sparse one against it where the two must agree."""

import jax
import numpy as np
import pytest

from revarb.gp.collapsed import collapsed_bound
from revarb.gp.layer import Gaussians, Layer, Targets, inverse_softplus
from revarb.gp.posterior import compute_posterior, exact_posterior, log_evidence, predict_certain
from support import oracles


@pytest.fixture
def problem(rng):
    x, y = rng.normal(size=(15, 3)), rng.normal(size=(15, 2))
    raw = (np.asarray(inverse_softplus(value)) for value in (np.array([0.4, 1.3, 0.1]), 1.7, 0.2))
    return Layer(x, *raw), x, y


def test_evidence_is_the_density_of_y(problem):
    layer, x, y = problem
    K = oracles.rbf(x, x, layer.w, layer.variance)
    assert log_evidence(layer, y) == pytest.approx(oracles.log_gaussian(y, K + 0.2 * np.eye(15)), rel=1e-10)


def test_predictions_are_those_of_the_textbook(problem, rng):
    layer, x, y = problem
    new = rng.normal(size=(6, 3))
    mean, variance = predict_certain(exact_posterior(layer, y), new)
    inverse = np.linalg.inv(oracles.rbf(x, x, layer.w, layer.variance) + 0.2 * np.eye(15))
    cross = oracles.rbf(new, x, layer.w, layer.variance)
    np.testing.assert_allclose(mean, cross @ inverse @ y, atol=1e-10)
    np.testing.assert_allclose(variance, 1.7 - np.diag(cross @ inverse @ cross.T), atol=1e-10)


def test_the_sparse_gp_with_all_data_as_inducing_inputs_is_the_exact_one(problem, rng):
    layer, x, y = problem
    known, new = Gaussians(x, None), rng.normal(size=(6, 3))
    bound = collapsed_bound(layer, known, Targets(y, 0.0), 1e-10)
    assert bound == pytest.approx(float(log_evidence(layer, y)), abs=1e-5)
    for sparse, exact in zip(
        predict_certain(compute_posterior(layer, known, y, 1e-10), new),
        predict_certain(exact_posterior(layer, y), new),
        strict=True,
    ):
        np.testing.assert_allclose(sparse, exact, atol=1e-6)


def test_known_regressors_are_the_limit_of_vanishing_variance(problem, rng):
    layer, x, y = problem
    few = Layer(rng.normal(size=(5, 3)), layer.raw_w, layer.raw_variance, layer.raw_sigma2)
    known = collapsed_bound(few, Gaussians(x, None), Targets(y, 0.0), 1e-6)
    vanishing = collapsed_bound(few, Gaussians(x, np.zeros_like(x)), Targets(y, 0.0), 1e-6)
    assert known == pytest.approx(float(vanishing), rel=1e-10)


def test_gradient_of_the_evidence(problem):
    layer, _, y = problem
    raw = np.asarray(layer.raw_w)
    gradient = jax.grad(lambda w: log_evidence(Layer(layer.zeta, w, layer.raw_variance, layer.raw_sigma2), y))(raw)

    def value(w):
        return float(log_evidence(Layer(layer.zeta, w, layer.raw_variance, layer.raw_sigma2), y))

    for index in range(len(raw)):
        assert gradient[index] == pytest.approx(oracles.finite_difference(value, raw, index), rel=1e-7)
