"""The exact GP against dense matrices; test_layer.py compares the sparse one with it."""

import jax
import numpy as np
import pytest

from revarb.gp.layer import Layer, inverse_softplus
from revarb.gp.posterior import exact_posterior, log_evidence, predict_certain
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


def test_gradient_of_the_evidence(problem):
    layer, _, y = problem
    raw = np.asarray(layer.raw_w)

    def value(w):
        return log_evidence(Layer(layer.zeta, w, layer.raw_variance, layer.raw_sigma2), y)

    expected = [oracles.finite_difference(value, raw, index) for index in range(len(raw))]
    np.testing.assert_allclose(jax.grad(value)(raw), expected, rtol=1e-7)
