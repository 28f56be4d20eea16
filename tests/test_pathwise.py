"""Drawn functions against the posterior that they are drawn from, and the runs that follow them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import small
from revarb.data import trajectory
from revarb.data.preprocessor import Preprocessor
from revarb.data.windows import Order
from revarb.gp import pathwise
from revarb.gp.exact import exact_posterior
from revarb.gp.kernel import rbf
from revarb.gp.layer import Gaussians
from revarb.gp.pathwise import draw_functions
from revarb.gp.posterior import compute_posterior, predict_certain
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.moments import Moments
from revarb.simulation.run import _distance, simulate_chain
from revarb.simulation.samples import run_samples
from revarb.simulation.starts import cold_origin
from test_collapsed import make_layer
from test_simulate import monte_carlo

BATCHES, DRAWS = 10, 1000
GRID = np.linspace(-4.0, 4.0, 33)[:, None]

compiled_posterior = jax.jit(compute_posterior, static_argnames="jitter")
draw = jax.jit(draw_functions, static_argnames="count")


def exact(layer, y):
    """The exact GP, as arrays of NumPy."""
    return jax.tree.map(np.asarray, jax.jit(exact_posterior)(layer, y))


@pytest.fixture(scope="module")
def layers():
    """A sparse layer that has seen uncertain regressors, and an exact GP of the same shape; two outputs each."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(40, 3))
    y = np.stack([np.sin(x[:, 0]) + 0.3 * x[:, 1], np.cos(x[:, 2])], axis=1)
    settings = np.array([0.6, 0.4, 0.8]), 1.3, 0.2
    sparse = compiled_posterior(make_layer(x[:15], *settings), Gaussians(x, np.full_like(x, 0.1)), y, jitter=1e-6)
    return {"sparse": sparse, "exact": exact(make_layer(x[:15], *settings), y[:15])}


@jax.jit
def values_at(layer, points, keys):
    """Every draw at every point: [keys, draws, points, outputs]."""

    def batch(key):
        functions = draw_functions(layer, key, DRAWS)
        return jax.vmap(lambda x: functions.at(jnp.broadcast_to(x, (DRAWS, len(x)))), out_axes=1)(points)

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
    assert abs(np.cov(drawn[:, 3, 0], drawn[:, 3, 1])[0, 1]) < 5.0 * error[3, 3], "outputs are drawn apart"
    # The frequencies are new in every batch; what the draws of one batch have in common by sharing them is small.
    stds = np.broadcast_to(np.sqrt(variance)[:, None], batches.shape[2:])
    np.testing.assert_allclose(batches.std(axis=1), np.broadcast_to(stds, (BATCHES, *stds.shape)), rtol=0.15)


def test_a_draw_is_a_function(layers, rng):
    """Asked twice it says the same, whatever the others are asked; it is smooth; the seed decides which it is."""
    functions, again, others = (draw(layers["exact"], jax.random.key(seed), 5) for seed in (1, 1, 2))
    x, y = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    first = functions.at(x)
    assert first.shape == (5, 2) and functions.outputs == 2
    y[2] = x[2]
    np.testing.assert_array_equal(functions.at(y)[2], first[2])
    np.testing.assert_allclose(functions.at(x + 1e-7), first, atol=1e-5)
    np.testing.assert_array_equal(again.at(x), first)
    assert np.abs(others.at(x) - first).min() > 1e-4
    assert np.ptp(functions.at(np.broadcast_to(x[0], (5, 3))), axis=0).min() > 0.01, "the draws differ"


def test_cosine_and_sine(rng):
    phase = 30.0 * rng.normal(size=1000)
    for got, expected in zip(pathwise._cosine_and_sine(phase), (np.cos(phase), np.sin(phase)), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-13)


def test_the_remaining_doubt_survives_a_reduction_full_of_large_numbers(rng):
    """Crowded inducing inputs: where a regressor sees it, the root is that of G − G K G, to the last digits."""
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


def remembering_loop(layer, start, steps, count, rng):
    """Trajectories of one lag by a plain loop: f at a new regressor is drawn given f at all regressors before."""

    zeta = np.broadcast_to(layer.zeta[:, 0], (count, len(layer.zeta)))

    def kernel(a, b):
        return layer.variance * np.exp(-0.5 * layer.w[0] * (a[:, :, None] - b[:, None, :]) ** 2)

    def covariance(a, b):
        return kernel(a, b) - kernel(a, zeta) @ layer.reduction @ kernel(zeta, b)

    y = rng.normal(start.mean, np.sqrt(start.cov[0]), size=(count, 1))
    visited, residuals, rows = np.empty((count, 0)), np.empty((count, 0)), []
    for _ in range(steps):
        seen = covariance(visited, visited) + 1e-9 * np.eye(visited.shape[1])
        weights = np.linalg.solve(seen, covariance(visited, y))[:, :, 0]
        mean = np.sum(weights * residuals, axis=1)
        variance = covariance(y, y)[:, 0, 0] - np.sum(weights * covariance(visited, y)[:, :, 0], axis=1)
        residual = mean + np.sqrt(np.maximum(variance, 0.0)) * rng.normal(size=count)
        visited, residuals = np.hstack([visited, y]), np.hstack([residuals, residual[:, None]])
        y = np.asarray(layer.mean(y)) + residual[:, None] + np.sqrt(layer.sigma2) * rng.normal(size=(count, 1))
        rows.append(y)
    return np.stack(rows, axis=1)


def test_every_trajectory_remembers_what_its_function_was(rng):
    """Against draws that are given all earlier ones; a loop that forgets them is told apart."""
    x = np.array([[-2.0], [0.5], [2.0]])
    layer = exact(make_layer(x, np.array([0.3]), 1.0, 0.02), 0.9 * x)
    chain, start = Chain((layer,), None, 1), StartState(np.array([1.2]), np.array([[0.01]]), np.zeros((0, 0)))
    count, steps = 4000, 8
    _, drawn = run_samples(chain, start, np.zeros((steps, 0)), 0, jax.random.key(0), count)
    expected = remembering_loop(layer, start, steps, count, rng)
    np.testing.assert_allclose(np.mean(drawn, axis=0), expected.mean(0), atol=5.0 * expected.std() / np.sqrt(count))
    np.testing.assert_allclose(np.std(drawn, axis=0), expected.std(0), rtol=0.06)
    forgetful = monte_carlo(chain, start, np.zeros((steps, 0)), count, rng)
    assert np.abs(forgetful.std(0) / expected.std(0) - 1.0).max() > 0.12


def hand_made_run(targets, method):
    """Twelve steps, cold, of a system without inputs: one lag, and an exact GP that has seen `targets` on the grid."""
    prep = Preprocessor.from_records([small.record(inputs=0)], Order(1, 0, 1))
    layer = exact(make_layer(GRID, np.array([1.0]), 1.0, 0.02), targets)
    chain = Chain((layer,), None, 1)
    return simulate_chain(prep, chain, None, method, cold_origin(prep, chain), steps=12, samples=500, seed=4)


def test_where_a_system_is_nearly_linear_all_methods_agree():
    mean, moments, samples = (hand_made_run(0.3 * GRID + 0.1, name) for name in ("mean", "moments", "samples"))
    np.testing.assert_allclose(moments.mean, mean.mean, atol=0.02 * moments.std.max())
    np.testing.assert_allclose(samples.mean, moments.mean, atol=0.2 * moments.std.max())
    np.testing.assert_allclose(samples.std, moments.std, rtol=0.15)
    assert samples.disagreement < 0.1 and samples.warning is None
    assert moments.disagreement is None and mean.warning is None
    # By hand, after the settling, and without the Monte Carlo error; the noise of y is no part of that.
    noise = 0.02 * small.record(inputs=0).y.var()
    squares = ((samples.mean - moments.mean) ** 2 - (samples.std**2 - noise) / 500) / moments.std**2
    assert samples.disagreement == pytest.approx(np.sqrt(max(squares[samples.skip :].mean(), 0.0)), abs=1e-9)


def test_the_doubt_of_a_slow_system_adds_up():
    """A function that is too high is so at every step; moments have it too high now and too low then."""
    moments, samples = (hand_made_run(0.8 * GRID + 0.1, name) for name in ("moments", "samples"))
    assert samples.std[-1, 0] > 1.2 * moments.std[-1, 0]
    np.testing.assert_allclose(samples.std[0], moments.std[0], rtol=0.1)


def test_where_it_has_two_ends_the_trajectory_says_that_moments_fail():
    """Whoever is left of −0.5 goes to −1.5, all others to 1: no Gaussian is in both places."""
    path = hand_made_run(np.where(GRID < -0.5, -1.5, 1.0), "samples")
    assert path.disagreement > 1.0
    assert f"their means are {path.disagreement:.2f} standard deviations apart; trust the samples" in path.warning


def test_the_distance_to_the_moments():
    moments = Moments(np.zeros((4, 2)), np.full((4, 2), 4.0))
    mean, error = np.array([[9.0], [1.0], [1.0], [1.0]]) * np.ones(2), np.full((4, 2), 0.75)
    assert _distance(mean, error, moments, skip=1) == pytest.approx(0.25)
    assert _distance(mean, 2.0 * error, moments, skip=1) == 0.0, "no more than chance"
    assert _distance(mean, error, moments, skip=4) is None, "nothing is left to score"


def test_the_warning_begins_above_the_threshold():
    def path(disagreement):
        return trajectory.Trajectory(np.zeros((3, 1)), None, "samples", 0, ("y",), disagreement=disagreement)

    limit = trajectory.MAX_DISAGREEMENT
    assert path(None).warning is None and path(limit).warning is None
    assert "0.26 standard deviations" in path(limit + 0.01).warning
    assert "nan" in path(float("nan")).warning, "moments that are no numbers disagree"
