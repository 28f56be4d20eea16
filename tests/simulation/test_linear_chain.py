"""Chains whose layers have linear parts: exact linear-Gaussian propagation, a Kalman filter, samples, zeros."""

import jax
import numpy as np
import pytest

from revarb.gp.layer import Linear
from revarb.gp.posterior import Posterior
from revarb.simulation.chain import Chain
from revarb.simulation.filtering import filter_states
from revarb.simulation.mean import run_mean
from revarb.simulation.moments import run_moments
from revarb.simulation.samples import run_samples
from support.chains import correlated_start, monte_carlo
from support.random_models import add_linear

L, NOISES = 2, (0.05, 0.02, 0.03)


def linear_layer(linear, noise):
    """A layer without a GP part: kernel variance and β of zero."""
    size, outputs = linear.coefficients.shape
    blank = Posterior(np.zeros((1, size)), np.ones(size), np.zeros(()), np.array(noise), np.zeros((1, outputs)),
                      np.zeros((1, 1)))  # fmt: skip
    return add_linear(blank, linear)


@pytest.fixture
def parts(rng):
    """Linear parts of two hidden layers with two and one states, and of two outputs; two lags, three known inputs."""
    shapes = [(2 * L + 3, 2), (L + 2 * L, 1), (L, 2)]
    return [Linear(0.3 * rng.normal(size=shape), 0.2 * rng.normal(size=shape[1])) for shape in shapes]


@pytest.fixture
def chain(parts):
    layers = [linear_layer(part, noise) for part, noise in zip(parts, NOISES, strict=True)]
    return Chain(tuple(layers[:-1]), layers[-1], L)


def as_state_space(parts):
    """Matrices of ξ' = F ξ + B ū + c + noise of covariance Q, y = M ξ' + o, for the joint state of six entries.

    ξ = [a_i, a_{i−1} (two entries each), b_i, b_{i−1}]. The layers move one after the other, so that the second one
    sees the new state of the first: written out as two steps, each of which replaces a window.
    """
    first, second, output = parts
    step1, input1, shift1, noise1 = np.zeros((6, 6)), np.zeros((6, 3)), np.zeros(6), np.zeros((6, 6))
    step1[:2, :4], input1[:2], shift1[:2] = first.coefficients[:4].T, first.coefficients[4:].T, first.offset
    step1[2:4, :2], step1[4:, 4:], noise1[:2, :2] = np.eye(2), np.eye(2), NOISES[0] * np.eye(2)
    step2, shift2, noise2 = np.zeros((6, 6)), np.zeros(6), np.zeros((6, 6))
    step2[:4, :4], step2[5, 4] = np.eye(4), 1.0
    step2[4, 4:], step2[4, :4] = second.coefficients[:2, 0], second.coefficients[2:, 0]
    shift2[4], noise2[4, 4] = second.offset[0], NOISES[1]
    M = np.zeros((2, 6))
    M[:, 4:] = output.coefficients.T
    transition = step2 @ step1, step2 @ input1, step2 @ shift1 + shift2, step2 @ noise1 @ step2.T + noise2
    return *transition, M, output.offset


def kalman(parts, start, u_bar, y, until):
    """Predicted mean and covariance of y at every row, and the state at the end; outputs up to row `until` are used."""
    F, B, c, Q, M, o = as_state_space(parts)
    mean, cov, means, covs = start.mean, start.cov, [], []
    for row, now in enumerate(u_bar):
        mean, cov = F @ mean + B @ now + c, F @ cov @ F.T + Q
        predicted, spread = M @ mean + o, M @ cov @ M.T + NOISES[2] * np.eye(2)
        means.append(predicted)
        covs.append(spread)
        known = np.flatnonzero(np.isfinite(y[row])) if row < until else []
        for j in known:  # one output after the other; the noises are independent
            gain = cov @ M[j] / (M[j] @ cov @ M[j] + NOISES[2])
            mean, cov = mean + gain * (y[row, j] - M[j] @ mean - o[j]), cov - np.outer(gain, M[j] @ cov)
    return np.array(means), np.array(covs), mean, cov


@pytest.fixture
def start(chain, rng):
    return correlated_start(chain, rng, scale=0.8)


@pytest.fixture
def u_bar(rng):
    return rng.normal(size=(12, 3))


@pytest.fixture
def y(rng):
    """Outputs with gaps: a whole row, and single entries."""
    y = rng.normal(size=(12, 2))
    y[4], y[6, 0], y[8, 1] = np.nan, np.nan, np.nan
    return y


def test_without_a_gp_part_the_moments_are_those_of_a_linear_system(chain, parts, start, u_bar, y):
    means, covs, _, _ = kalman(parts, start, u_bar, y, until=0)
    got = run_moments(chain, start, u_bar)
    np.testing.assert_allclose(got.mean, means, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(got.variance, [np.diag(cov) for cov in covs], rtol=1e-12)
    np.testing.assert_allclose(run_mean(chain, start, u_bar), means, rtol=1e-12, atol=1e-13)


def test_without_a_gp_part_filtering_is_a_kalman_filter(chain, parts, start, u_bar, y):
    _, _, mean, cov = kalman(parts, start, u_bar, y, until=12)
    got = filter_states(chain, start, u_bar, y)
    np.testing.assert_allclose(got.mean, mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(got.cov, cov, rtol=1e-10, atol=1e-12)


def test_one_sampled_step_agrees_with_the_monte_carlo_loop(tilted, rng):
    """In one step every function is evaluated once, so that drawing functions and drawing values are equivalent.

    In later steps they differ, since the loop draws independent values: test_samples.py compares several steps.
    """
    start, u_bar = correlated_start(tilted, rng, scale=0.25), rng.uniform(-1, 1, size=(1, 2))
    f, drawn = run_samples(tilted, start, u_bar, jax.random.key(0), 8000)
    expected = monte_carlo(tilted, start, u_bar, 20_000, rng)
    np.testing.assert_allclose(np.mean(drawn, axis=0), expected.mean(0), atol=0.05 * expected.std(0).max())
    np.testing.assert_allclose(np.std(drawn, axis=0), expected.std(0), rtol=0.05)
    assert np.var(drawn - f) == pytest.approx(float(tilted.output.sigma2), rel=0.1)
