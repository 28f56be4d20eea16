"""Bootstrap filter and free runs of particles, against a dense Gaussian."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from revarb.baselines.state_space import fitted_state_space
from revarb.runtime.numerics import AnyArray, with_numerics
from support.linear_systems import LinearSystem

SYSTEM = LinearSystem(a=0.8, b=0.5, q=0.1, r=0.2)


class LinearDynamics(eqx.Module):
    """The transition of the linear system, the same for all particles."""

    a: AnyArray
    b: AnyArray
    process_std: AnyArray
    output_std: AnyArray

    def mean(self, x, u_bar):
        return self.a * x + self.b * u_bar

    def advance(self, x, u_bar, key):
        return self.mean(x, u_bar) + self.process_std * jax.random.normal(key, x.shape)


DYNAMICS = LinearDynamics(np.array(SYSTEM.a), np.array(SYSTEM.b), np.sqrt([SYSTEM.q]), np.sqrt([SYSTEM.r]))


@pytest.fixture
def data(rng):
    u = rng.normal(size=15)
    return u, SYSTEM.simulate(u, rng)


@with_numerics
@pytest.mark.parametrize("measured", [True, False])
def test_the_filter_finds_the_last_state_and_the_evidence_of_a_kalman_filter(data, measured):
    """The first sample is filtered by hand: the filter begins with a transition. Missing outputs say nothing."""
    u, y = data
    gain = measured / (1.0 + SYSTEM.r)
    first = np.random.default_rng(0).normal(gain * y[0], np.sqrt(1.0 - gain), size=(20_000, 1))
    later = y[1:, None] if measured else np.full((14, 1), np.nan)
    particles, evidence = fitted_state_space.filter_particles(DYNAMICS, first, u[1:, None], later, jax.random.key(0))
    mean, cov = SYSTEM.posterior(u, y) if measured else SYSTEM.joint(u)
    assert abs(particles.mean() - mean[-1]) < 0.02 and abs(particles.var() / cov[-1, -1] - 1.0) < 0.05
    expected = SYSTEM.log_evidence(u, y) - SYSTEM.log_evidence(u[:1], y[:1])
    assert abs(evidence - expected) < 0.1 if measured else evidence == 0.0


@with_numerics
def test_runs_have_the_moments_of_the_system(data):
    u, _ = data
    first = np.random.default_rng(0).normal(size=(20_000, 1))
    paths = fitted_state_space.run_particles(DYNAMICS, first, u[1:, None], jax.random.key(0))
    mean, cov = SYSTEM.joint(u)
    np.testing.assert_allclose(paths[..., 0].mean(axis=1), mean[1:], atol=0.03)
    np.testing.assert_allclose(paths[..., 0].var(axis=1), np.diag(cov)[1:], rtol=0.06)
    np.testing.assert_allclose(
        fitted_state_space.run_mean_states(DYNAMICS, np.zeros(1), u[1:, None])[:, 0], mean[1:], atol=1e-12
    )


@with_numerics
def test_systematic_resampling_keeps_particles_in_proportion_to_their_weights():
    weights = jnp.array([0.5, 0.25, 0.25, 0.0])
    for seed in range(5):
        np.testing.assert_array_equal(
            np.bincount(fitted_state_space.resample(weights, jax.random.key(seed)), minlength=4), [2, 1, 1, 0]
        )


@with_numerics
def test_likelihoods_are_those_of_a_gaussian_over_the_measured_outputs():
    x, y, std = np.array([[1.0, 2.0, 9.0]]), np.array([1.5, np.nan]), np.array([0.5, 3.0])
    expected = -0.5 - np.log(0.5) - 0.5 * np.log(2.0 * np.pi)
    np.testing.assert_allclose(fitted_state_space.log_likelihoods(x, y, std), [expected])
