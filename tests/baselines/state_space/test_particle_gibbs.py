"""Particle Gibbs with ancestor sampling against the exact posterior of linear Gaussian models, and its start."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from revarb.baselines.state_space import basis_regression, particle_gibbs
from revarb.baselines.state_space.particle_gibbs import Noise, compute_observer_states, sample_path, stack_records

A = np.array([[0.8, 0.3], [-0.2, 0.7]])
B = np.array([[0.5], [-0.4]])
NOISE = Noise(np.array([[0.3, 0.1], [0.1, 0.2]]), np.array([0.1]))


def draw_record(rng, samples, noise=NOISE):
    u, x, y = rng.normal(size=(samples, 1)), rng.normal(size=2), []
    for now in u:
        x = A @ x + B @ now + np.linalg.cholesky(noise.Q) @ rng.normal(size=2)
        y.append(x[: len(noise.R)] + np.sqrt(noise.R) * rng.normal(size=len(noise.R)))
    return u, np.array(y)


def smooth_densely(u, y, noise):
    """Mean and variance of the states, initial one included, from their joint Gaussian."""
    size, inverse = 2 * (len(y) + 1), np.linalg.inv(noise.Q)
    precision, shift = np.zeros((size, size)), np.zeros(size)
    precision[:2, :2] = np.eye(2)
    for t in range(len(y)):
        rows = slice(2 * t, 2 * t + 4)
        step = np.hstack([-A, np.eye(2)])  # x_t − A x_{t−1}
        precision[rows, rows] += step.T @ inverse @ step
        shift[rows] += step.T @ inverse @ (B @ u[t])
        for output in np.flatnonzero(np.isfinite(y[t])):
            precision[2 * t + 2 + output, 2 * t + 2 + output] += 1.0 / noise.R[output]
            shift[2 * t + 2 + output] += y[t, output] / noise.R[output]
    cov = np.linalg.inv(precision)
    return (cov @ shift).reshape(-1, 2), np.diag(cov).reshape(-1, 2)


def sample_paths(rows, noise, particles, sweeps):
    def mean(x, u_bar):
        return x @ A.T + B @ u_bar

    def sweep(path, key):
        path = sample_path(mean, noise, rows, path, particles, key)
        return path, path

    keys = jax.random.split(jax.random.key(1), sweeps)
    return np.asarray(jax.jit(lambda: jax.lax.scan(sweep, jnp.zeros((len(rows.y), 2)), keys)[1])())


@pytest.mark.parametrize(
    ("noise", "lengths", "gaps"),
    [(NOISE, (8, 5), [3]), (Noise(NOISE.Q, np.array([0.1, 0.4])), (7,), [(2, 0), (4, 1)])],
    ids=["two records", "two outputs"],
)
def test_paths_have_the_smoothed_moments(rng, noise, lengths, gaps):
    records = [draw_record(rng, length, noise) for length in lengths]
    for gap in gaps:
        records[0][1][gap] = np.nan
    paths = sample_paths(stack_records(*zip(*records, strict=True)), noise, particles=6, sweeps=8000)[100:]
    exact = [smooth_densely(u, y, noise) for u, y in records]
    means, variances = (np.concatenate(each) for each in zip(*exact, strict=True))
    np.testing.assert_allclose(paths.mean(axis=0), means, atol=0.05)
    np.testing.assert_allclose(paths.var(axis=0), variances, rtol=0.12)


def test_outputs_nearly_without_noise_do_not_stop_the_chain(rng):
    """The fully adapted filter weighs predictions: it moves where a bootstrap filter keeps only the reference."""
    noise = Noise(NOISE.Q, np.array([1e-8]))
    u, y = draw_record(rng, 20, noise)
    paths = sample_paths(stack_records([u], [y]), noise, particles=6, sweeps=400)
    assert np.mean(paths[1:, 1:, 1] != paths[:-1, 1:, 1]) > 0.6


VARIANCE, DEGREES, SCALE = 4.0, 5.0, 0.5  # prior of a model with one state and one weight


def sample_parameters(y, sweeps):
    """Draws of a, log q and log r of x_t = a x_{t−1} + v_t by particle Gibbs."""
    rows = stack_records([np.empty((len(y), 0))], [y])
    prior = basis_regression.WeightPrior(np.array([VARIANCE]), np.array(DEGREES), np.array([[SCALE]]))

    def sweep(state, key):
        path, r = state
        keys = jax.random.split(key, 3)
        statistics = basis_regression.collect_statistics(path, jnp.roll(path, 1, axis=0), 1.0 - rows.is_initial)
        a, Q = basis_regression.update_weights(prior, statistics).draw(keys[0])
        path = sample_path(lambda x, _: x @ a.T, Noise(Q, r), rows, path, 8, keys[1])
        r = particle_gibbs.draw_output_noise(keys[2], rows.y, path)
        return (path, r), jnp.array([a[0, 0], jnp.log(Q[0, 0]), jnp.log(r[0])])

    start, keys = (jnp.zeros((len(rows.y), 1)), jnp.ones(1)), jax.random.split(jax.random.key(0), sweeps)
    return np.asarray(jax.jit(lambda: jax.lax.scan(sweep, start, keys)[1])())


def integrate_parameters(y):
    """Mean and standard deviation of the same parameters on a grid, with the likelihood of a Kalman filter."""
    a, log_q, log_r = np.mgrid[-1.5:2.5:50j, -5.0:3.0:50j, -11.0:3.0:70j]
    q, r = np.exp(log_q), np.exp(log_r)
    log_weights = stats.norm.logpdf(a, 0.0, np.sqrt(q * VARIANCE))
    log_weights += stats.invgamma.logpdf(q, DEGREES / 2.0, scale=SCALE / 2.0) + log_q  # log: density of the logarithm
    log_weights += stats.invgamma.logpdf(r, particle_gibbs.OUTPUT_SHAPE, scale=particle_gibbs.OUTPUT_SCALE) + log_r
    mean, variance = np.zeros_like(a), np.ones_like(a)
    for value in y[:, 0]:
        mean, variance = a * mean, a**2 * variance + q
        log_weights += stats.norm.logpdf(value, mean, np.sqrt(variance + r))
        gain = variance / (variance + r)
        mean, variance = mean + gain * (value - mean), (1.0 - gain) * variance
    weights = np.exp(log_weights - log_weights.max())
    moments = [(np.average(each, weights=weights), np.average(each**2, weights=weights)) for each in (a, log_q, log_r)]
    return np.array([[first, np.sqrt(second - first**2)] for first, second in moments]).T


@pytest.mark.slow
def test_weights_and_noises_have_the_posterior_of_a_grid(rng):
    x, y = 0.0, []
    for _ in range(25):
        x = 0.8 * x + 0.6 * rng.normal()
        y.append([x + 0.3 * rng.normal()])
    draws = sample_parameters(np.array(y), 15000)[500:]
    means, stds = integrate_parameters(np.array(y))
    np.testing.assert_allclose(draws.mean(axis=0), means, atol=0.12 * stds.max(), rtol=0.0)
    np.testing.assert_allclose(draws.std(axis=0), stds, rtol=0.1)


def simulate_third_order(rng, samples):
    u, y = rng.normal(size=(samples, 1)), np.zeros((samples + 3, 1))
    for t in range(samples):
        y[t + 3] = 1.2 * y[t + 2] - 0.5 * y[t + 1] + 0.1 * y[t] + u[t] + (0.5 * u[t - 1] if t else 0.0)
    return u, y[3:]


def test_the_states_of_a_linear_system_follow_a_linear_transition(rng):
    """Exactly, and without the past: x_t is linear in x_{t−1} and ū_t."""
    records = [simulate_third_order(rng, 60), simulate_third_order(rng, 40)]
    blocks = compute_observer_states([u for u, _ in records], [y for _, y in records], 3)
    design = np.concatenate([np.hstack([x[:-1], u[1:]]) for x, (u, _) in zip(blocks, records, strict=True)])
    targets = np.concatenate([x[1:] for x in blocks])
    solution = np.linalg.lstsq(design, targets)[0]
    np.testing.assert_allclose(design @ solution, targets, atol=1e-10)
    np.testing.assert_array_equal(blocks[0][:, :1], records[0][1])
    np.testing.assert_allclose(np.concatenate(blocks)[:, 1:].std(axis=0), 1.0)


@pytest.mark.parametrize("states", [2, 3, 4])
def test_outputs_come_first_and_further_states_fill_up(rng, states):
    y = rng.normal(size=(50, 2))
    [x] = compute_observer_states([np.empty((50, 0))], [y], states)
    assert x.shape == (50, states)
    np.testing.assert_array_equal(x[:, :2], y)


def test_a_constant_output_has_constant_states():
    [x] = compute_observer_states([np.zeros((20, 1))], [np.zeros((20, 1))], 3)
    np.testing.assert_array_equal(x, 0.0)
