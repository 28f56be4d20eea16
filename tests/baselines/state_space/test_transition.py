"""Transition of a GP state-space model, against dense Gaussian conditioning."""

import jax
import numpy as np
import pytest

from revarb.baselines.state_space.transition import JITTER, kl_divergence, start_transition
from revarb.gp.layer import rbf
from revarb.runtime.numerics import with_numerics

STATES, INPUTS, ROWS, INDUCING = 2, 1, 40, 6


@pytest.fixture
def transition(rng):
    x, u = rng.normal(size=(ROWS, STATES)), rng.normal(size=(ROWS, INPUTS))
    with jax.enable_x64(True):
        return start_transition(x, u, 1, np.arange(1, ROWS), INDUCING, False, rng)


def dense(transition, state, x_hat):
    """Kernel matrices of one state, and what q(v) means for the inducing outputs."""
    layer = jax.tree.map(lambda leaf: leaf[state], transition.layers)
    K_z = np.asarray(rbf(layer.zeta, layer.zeta, layer.w, layer.variance) + JITTER * layer.variance * np.eye(INDUCING))
    cross = np.asarray(rbf(x_hat, layer.zeta, layer.w, layer.variance))
    raw = transition.v_root[state]
    root = np.tril(raw, -1) + np.diag(np.exp(np.diag(raw)))
    A = np.linalg.cholesky(K_z)
    return float(layer.variance), K_z, cross, A @ transition.v_mean[state], A @ root @ root.T @ A.T


@with_numerics
def test_the_marginal_is_that_of_a_sparse_gp(transition, rng):
    x_hat = rng.normal(size=(5, STATES + INPUTS))
    mean, variance = transition.marginal(x_hat)
    for state in range(STATES):
        prior, K_z, cross, u_mean, u_cov = dense(transition, state, x_hat)
        weights = np.linalg.solve(K_z, cross.T).T
        np.testing.assert_allclose(mean[:, state], weights @ u_mean + x_hat[:, state], atol=1e-10)
        expected = prior - np.sum(weights * cross, axis=1) + np.sum((weights @ u_cov) * weights, axis=1)
        np.testing.assert_allclose(variance[:, state], expected, atol=1e-8)
    np.testing.assert_allclose(transition.expect().mean(x_hat[:1, :STATES], x_hat[0, STATES:]), mean[:1], atol=1e-12)


@pytest.mark.slow
@with_numerics
def test_draws_have_the_moments_of_the_marginal(transition, rng):
    x = np.repeat(rng.normal(size=(1, STATES)), 40_000, axis=0)
    u = rng.normal(size=INPUTS)
    moved = transition.draw(jax.random.key(0), len(x)).advance(x, u, jax.random.key(1))
    mean, variance = transition.marginal(np.concatenate([x[:1], u[None]], axis=1))
    np.testing.assert_allclose(moved.mean(axis=0), mean[0], atol=0.02)
    np.testing.assert_allclose(moved.var(axis=0), variance[0] + transition.process_variance, rtol=0.05)


@with_numerics
def test_the_divergence_is_that_of_dense_gaussians(transition):
    expected = 0.0
    for state in range(STATES):
        _, K_z, _, u_mean, u_cov = dense(transition, state, np.zeros((1, STATES + INPUTS)))
        inside = np.trace(np.linalg.solve(K_z, u_cov)) + u_mean @ np.linalg.solve(K_z, u_mean) - INDUCING
        expected += 0.5 * (inside + np.linalg.slogdet(K_z)[1] - np.linalg.slogdet(u_cov)[1])
    np.testing.assert_allclose(kl_divergence(transition), expected, rtol=1e-8)
