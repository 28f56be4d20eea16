"""Drawn functions against the posterior that they are drawn from."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from revarb.gp import pathwise
from revarb.gp.layer import Gaussians, rbf
from revarb.gp.pathwise import draw_functions
from revarb.gp.posterior import predict_certain
from support.chains import compiled_posterior, exact_layer, make_layer

BATCHES, DRAWS = 10, 1000
draw = jax.jit(draw_functions, static_argnames="count")


@pytest.fixture(scope="module")
def layers():
    """A sparse layer trained on uncertain regressors, and an exact GP of the same shape; two outputs each."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(40, 3))
    y = np.stack([np.sin(x[:, 0]) + 0.3 * x[:, 1], np.cos(x[:, 2])], axis=1)
    settings = np.array([0.6, 0.4, 0.8]), 1.3, 0.2
    sparse = compiled_posterior(make_layer(x[:15], *settings), Gaussians(x, np.full_like(x, 0.1)), y, jitter=1e-6)
    return {"sparse": sparse, "exact": exact_layer(make_layer(x[:15], *settings), y[:15])}


@jax.jit
def values_at(layer, points, keys):
    """Every draw at every point: [keys, draws, points, outputs]."""

    def batch(key):
        functions = draw_functions(layer, key, DRAWS)
        return jax.vmap(lambda x: functions.evaluate(jnp.broadcast_to(x, (DRAWS, len(x)))), out_axes=1)(points)

    return jax.lax.map(batch, keys)


@pytest.mark.parametrize("which", ["sparse", "exact"])
def test_draws_have_the_mean_and_the_covariance_of_the_posterior(which, layers, rng):
    """Within five standard errors of 10⁴ draws, at points near the data, far from it, and close to each other."""
    layer = layers[which]
    points = np.concatenate([layer.zeta[:2], layer.zeta[:1] + 0.2, rng.normal(size=(2, 3)), np.full((1, 3), 6.0)])
    batches = np.asarray(values_at(layer, points, jax.random.split(jax.random.key(0), BATCHES)))
    drawn = batches.reshape(-1, *batches.shape[2:])
    cross = np.asarray(rbf(points, layer.zeta, layer.w, layer.variance))
    expected = np.asarray(rbf(points, points, layer.w, layer.variance)) - cross @ layer.reduction @ cross.T
    mean, variance = (np.asarray(part) for part in predict_certain(layer, points))
    np.testing.assert_allclose(np.diag(expected), variance, rtol=1e-9)
    assert (np.abs(drawn.mean(0) - mean) < 5.0 * np.sqrt(variance / len(drawn))[:, None]).all()
    error = np.sqrt((np.outer(variance, variance) + expected**2) / len(drawn))
    for output in range(2):
        assert (np.abs(np.cov(drawn[:, :, output].T) - expected) < 5.0 * error).all()
    assert abs(np.cov(drawn[:, 3, 0], drawn[:, 3, 1])[0, 1]) < 5.0 * error[3, 3], "outputs are drawn independently"
    # The frequencies are new in every batch; what the draws of one batch have in common by sharing them is small.
    stds = np.broadcast_to(np.sqrt(variance)[:, None], batches.shape[2:])
    np.testing.assert_allclose(batches.std(axis=1), np.broadcast_to(stds, (BATCHES, *stds.shape)), rtol=0.15)


def test_a_draw_is_a_function(layers, rng):
    """Equal arguments give equal values, independent of the other draws; it is smooth, and determined by the seed."""
    functions, again, others = (draw(layers["exact"], jax.random.key(seed), 5) for seed in (1, 1, 2))
    x, y = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    first = functions.evaluate(x)
    assert first.shape == (5, 2) and functions.outputs == 2
    y[2] = x[2]
    np.testing.assert_array_equal(functions.evaluate(y)[2], first[2])
    np.testing.assert_allclose(functions.evaluate(x + 1e-7), first, atol=1e-5)
    np.testing.assert_array_equal(again.evaluate(x), first)
    assert np.abs(others.evaluate(x) - first).min() > 1e-4
    assert np.ptp(functions.evaluate(np.broadcast_to(x[0], (5, 3))), axis=0).min() > 0.01, "the draws differ"


def test_cosine_and_sine(rng):
    phase = 30.0 * rng.normal(size=1000)
    for got, expected in zip(pathwise._cosine_and_sine(phase), (np.cos(phase), np.sin(phase)), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-13)


def test_the_residual_root_is_accurate_for_crowded_inducing_inputs(rng):
    """With crowded inducing inputs the root reproduces k(x, ζ) (G − G K G) k(ζ, x) accurately."""
    x = rng.normal(size=(200, 2))
    layer = make_layer(x[:60], np.array([0.1, 0.05]), 1.0, 1e-3)
    known = compiled_posterior(layer, Gaussians(x, None), np.sin(x[:, :1]), jitter=1e-8)
    G = np.asarray(known.reduction)
    assert np.abs(G).max() > 1e3
    root = np.asarray(jax.jit(pathwise._residual_root)(known))
    cross = np.asarray(rbf(x, known.zeta, known.w, known.variance))
    K = np.asarray(rbf(known.zeta, known.zeta, known.w, known.variance))
    expected = np.sum(cross @ (G - G @ K @ G) * cross, axis=1)
    np.testing.assert_allclose(np.sum((cross @ root) ** 2, axis=1), expected, rtol=1e-3)
