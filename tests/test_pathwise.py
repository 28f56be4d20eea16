"""Drawn functions against the posterior that they are drawn from, and the runs that follow them."""

import jax
import numpy as np
import pytest

import small
from revarb import GPNARX, pathwise, trajectory
from revarb.collapsed import Gaussians, Posterior, posterior, predict_certain
from revarb.exact import exact_posterior
from revarb.frame import Frame
from revarb.free_run import free_run
from revarb.kernel import rbf
from revarb.pathwise import DrawnFunctions, draw_functions
from revarb.simulate import Chain, Start, run_samples
from revarb.windows import Lags
from test_collapsed import make_layer
from test_simulate import monte_carlo

BATCHES, DRAWS = 20, 1000


@pytest.fixture
def layers(rng):
    """A sparse layer that has seen uncertain regressors, and an exact GP; two outputs each."""
    x = rng.normal(size=(15, 3))
    y = np.stack([np.sin(x[:, 0]) + 0.3 * x[:, 1], np.cos(x[:, 2])], axis=1)
    settings = np.array([0.6, 0.4, 0.8]), 1.3, 0.2
    sparse = posterior(make_layer(x[:6], *settings), Gaussians(x, np.full_like(x, 0.1)), y, 1e-6)
    return {"sparse": sparse, "exact": exact_posterior(make_layer(x, *settings), y)}


def values_at(layer, points, key):
    """Every draw at every point, frequencies anew in every batch: [draws, points, outputs]."""

    def batch(key):
        functions = draw_functions(layer, key, DRAWS)
        everywhere = jax.vmap(lambda x: functions.at(jax.numpy.broadcast_to(x, (DRAWS, len(x)))), out_axes=1)
        return everywhere(points)

    drawn = jax.jit(lambda keys: jax.lax.map(batch, keys))(jax.random.split(key, BATCHES))
    return np.asarray(drawn).reshape(-1, len(points), layer.outputs)


@pytest.mark.parametrize("which", ["sparse", "exact"])
def test_draws_have_the_mean_and_the_covariance_of_the_posterior(which, layers, rng):
    """Within five standard errors, at points near the data, far from it, and close to each other."""
    layer = layers[which]
    points = np.concatenate([layer.zeta[:2], layer.zeta[:1] + 0.2, rng.normal(size=(2, 3)), np.full((1, 3), 6.0)])
    drawn = values_at(layer, points, jax.random.key(0))
    count = len(drawn)
    cross = np.asarray(rbf(points, layer.zeta, layer.w, layer.variance))
    expected = np.asarray(rbf(points, points, layer.w, layer.variance)) - cross @ layer.reduction @ cross.T
    mean, variance = predict_certain(layer, points)
    np.testing.assert_allclose(np.diag(expected), variance, rtol=1e-9)
    error = np.sqrt(variance / count)
    assert (np.abs(drawn.mean(0) - mean) < 5.0 * error[:, None]).all()
    spread = np.sqrt((np.outer(variance, variance) + expected**2) / count)
    for output in range(2):
        assert (np.abs(np.cov(drawn[:, :, output].T) - expected) < 5.0 * spread).all()
    between = np.cov(drawn[:, 3, 0], drawn[:, 3, 1])[0, 1]
    assert abs(between) < 5.0 * spread[3, 3], "outputs are drawn apart"


def test_one_set_of_frequencies_is_enough(layers):
    """What all draws of a run share by their common frequencies: a few percent of the standard deviation."""
    layer, points = layers["sparse"], layers["exact"].zeta
    functions = draw_functions(layer, jax.random.key(3), 4000)
    drawn = np.stack([functions.at(np.broadcast_to(x, (4000, 3))) for x in points])
    expected = np.sqrt(predict_certain(layer, points)[1])
    np.testing.assert_allclose(drawn.std(axis=1), np.stack([expected] * 2, axis=1), rtol=0.15)


def test_a_draw_is_a_function(layers, rng):
    """Asked twice it says the same, whatever the others are asked; and it is smooth."""
    functions = draw_functions(layers["exact"], jax.random.key(1), 5)
    x, other = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    first = functions.at(x)
    assert first.shape == (5, 2) and functions.outputs == 2
    other[2] = x[2]
    np.testing.assert_array_equal(functions.at(other)[2], first[2])
    np.testing.assert_allclose(functions.at(x + 1e-7), first, atol=1e-5)
    same = functions.at(np.broadcast_to(x[0], (5, 3)))
    assert np.ptp(same, axis=0).min() > 0.01, "the draws differ"


def test_the_remaining_doubt_survives_a_reduction_full_of_large_numbers(rng):
    """Crowded inducing inputs: where a regressor sees it, the root is that of G − G K G, to the last digits."""
    x = rng.normal(size=(200, 2))
    layer = make_layer(x[:60], np.array([0.1, 0.05]), 1.0, 1e-3)
    known = posterior(layer, Gaussians(x, None), np.sin(x[:, :1]), 1e-8)
    G = np.asarray(known.reduction)
    assert np.abs(G).max() > 1e3
    root = np.asarray(pathwise._doubt_root(known))
    cross = np.asarray(rbf(x, known.zeta, known.w, known.variance))
    K = np.asarray(rbf(known.zeta, known.zeta, known.w, known.variance))
    expected = np.sum(cross @ (G - G @ K @ G) * cross, axis=1)
    np.testing.assert_allclose(np.sum((cross @ root) ** 2, axis=1), expected, rtol=1e-3)


def remembering_loop(layer, start, steps, count, rng):
    """Trajectories of one lag by a plain loop: f at a new regressor is drawn given f at all regressors before."""

    def covariance(a, b):
        left, right = (np.asarray(rbf(x.reshape(-1, 1), layer.zeta, layer.w, layer.variance)) for x in (a, b))
        left, right = left.reshape(*a.shape, -1), right.reshape(*b.shape, -1)
        prior = layer.variance * np.exp(-0.5 * layer.w[0] * (a[:, :, None] - b[:, None, :]) ** 2)
        return prior - left @ layer.reduction @ np.swapaxes(right, 1, 2)

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
    layer = exact_posterior(make_layer(x, np.array([0.3]), 1.0, 0.02), 0.9 * x)
    chain, start = Chain((layer,), None, 1), Start(np.array([1.2]), np.array([[0.01]]), np.zeros((0, 0)))
    count, steps = 4000, 8
    _, drawn = run_samples(chain, start, np.zeros((steps, 0)), 0, jax.random.key(0), count)
    expected = remembering_loop(layer, start, steps, count, rng)
    np.testing.assert_allclose(np.mean(drawn, axis=0), expected.mean(0), atol=5.0 * expected.std() / np.sqrt(count))
    np.testing.assert_allclose(np.std(drawn, axis=0), expected.std(0), rtol=0.06)
    forgetful = monte_carlo(chain, start, np.zeros((steps, 0)), count, rng)
    assert np.abs(forgetful.std(0) / expected.std(0) - 1.0).max() > 0.12


def still(steps):
    """A frame for a hand-made system with one lag and no inputs, in units of its own."""
    records = [small.record(inputs=0)]
    return Frame.of(records, Lags(1, 0, 1)), {"u": None, "initial": None, "steps": steps, "samples": 500, "seed": 4}


def narx(targets, grid):
    layer = exact_posterior(make_layer(grid, np.array([1.0]), 1.0, 1e-3), targets)
    return Chain((layer,), None, 1)


def test_where_a_system_is_nearly_linear_all_methods_agree():
    grid = np.linspace(-4.0, 4.0, 33)[:, None]
    frame, rest = still(12)
    chain = narx(0.8 * grid + 0.1, grid)
    mean, moments, samples = (free_run(frame, chain, method=name, **rest) for name in ("mean", "moments", "samples"))
    np.testing.assert_allclose(moments.mean, mean.mean, atol=0.02 * moments.std.max())
    np.testing.assert_allclose(samples.mean, moments.mean, atol=0.2 * moments.std.max())
    np.testing.assert_allclose(samples.std, moments.std, rtol=0.15)
    assert samples.disagreement < 0.1 and samples.warning is None
    assert moments.disagreement is None and mean.warning is None


def test_where_it_has_two_ends_the_trajectory_says_that_moments_fail():
    """Whoever is left of −0.5 goes to −1.5, all others to 1: no Gaussian is in both places."""
    grid = np.linspace(-4.0, 4.0, 33)[:, None]
    frame, rest = still(12)
    path = free_run(frame, narx(np.where(grid < -0.5, -1.5, 1.0), grid), method="samples", **rest)
    assert path.disagreement > 1.0
    assert path.warning.startswith(
        f"samples and moments disagree: their means are {path.disagreement:.2f} standard dev"
    )
    assert "trust the samples" in path.warning


def test_disagreement_is_measured_after_the_settling_and_without_the_monte_carlo_error():
    model, u = GPNARX(lags=2, input_lags=2, iterations=5).fit(small.record(outputs=2)), small.record(3).u
    moments, path = model.simulate(u), model.simulate(u, "samples", samples=50)
    apart = path.std**2 - model.scaling.y_std**2 * float(model.chain.last.sigma2)
    squares = ((path.mean - moments.mean) ** 2 - apart / 50) / moments.std**2
    assert path.disagreement == pytest.approx(np.sqrt(max(squares[path.skip :].mean(), 0.0)), abs=1e-9)
    assert model.simulate(u[:3], "samples").disagreement is None, "nothing is left after the settling"


def test_the_warning_begins_above_the_threshold():
    def path(disagreement):
        return trajectory.Trajectory(np.zeros((3, 1)), None, "samples", 0, ("y",), disagreement=disagreement)

    limit = trajectory.AGREEMENT
    assert path(None).warning is None and path(limit).warning is None
    assert "0.51 standard deviations" in path(limit + 0.01).warning
    assert "nan" in path(float("nan")).warning, "moments that are no numbers disagree"


def test_same_seed_same_draws(layers):
    def drawn(seed) -> DrawnFunctions:
        return draw_functions(layers["sparse"], jax.random.key(seed), 3, features=8)

    assert isinstance(layers["sparse"], Posterior) and drawn(0).frequencies.shape == (3, 8)
    np.testing.assert_array_equal(drawn(0).weights, drawn(0).weights)
    assert not np.array_equal(drawn(0).weights, drawn(1).weights)
