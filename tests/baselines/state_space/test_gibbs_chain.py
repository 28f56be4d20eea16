"""The Markov chain of a reduced-rank GP state-space model: hyperparameters against a grid."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from revarb.baselines.state_space.gibbs_chain import (
    LOG_LENGTH_MEAN,
    LOG_LENGTH_STD,
    LOG_SIGNAL_MEAN,
    LOG_SIGNAL_STD,
    Hyperparameters,
    make_weight_prior,
    step_hyperparameters,
)
from revarb.baselines.state_space.laplace_basis import LaplaceBasis
from revarb.baselines.state_space.matrix_normal import collect_statistics, update_weights
from revarb.baselines.state_space.reduced_rank_dynamics import compute_features

BASIS = LaplaceBasis.build(np.array([3.0]), 8)
PROCESS = 0.01 * np.eye(1)


def draw_statistics(rng):
    x = rng.uniform(-2.0, 2.0, (40, 1))
    targets = np.sin(2.0 * x) + 0.1 * rng.normal(size=x.shape)
    return collect_statistics(targets, compute_features(BASIS, x, np.empty((40, 0))), np.ones(40))


def integrate_on_a_grid(statistics):
    """Posterior mean and standard deviation of both logarithms."""
    signals = np.linspace(-8.0, 22.0, 121)
    lengths = np.linspace(-2.0, 2.0, 121)

    def log_evidence(signal, length):
        hyperparameters = Hyperparameters(signal, length[None])
        return update_weights(make_weight_prior(hyperparameters, BASIS, PROCESS), statistics).log_evidence

    evidence = jax.vmap(lambda signal: jax.vmap(lambda length: log_evidence(signal, length))(lengths))(signals)
    prior = ((signals[:, None] - LOG_SIGNAL_MEAN) / LOG_SIGNAL_STD) ** 2 + (
        (lengths - LOG_LENGTH_MEAN) / LOG_LENGTH_STD
    ) ** 2
    weights = np.asarray(jax.nn.softmax((evidence - 0.5 * prior).ravel())).reshape(evidence.shape)
    return [summarise(*each) for each in ((signals, weights.sum(axis=1)), (lengths, weights.sum(axis=0)))]


def summarise(values, weights):
    mean = weights @ values
    return mean, np.sqrt(weights @ (values - mean) ** 2)


@pytest.mark.slow
def test_the_steps_sample_the_posterior_of_the_hyperparameters(rng):
    statistics = draw_statistics(rng)

    def step(now, key):
        new, _ = step_hyperparameters(key, now, BASIS, PROCESS, statistics)
        return new, new

    first = Hyperparameters(jnp.array(LOG_SIGNAL_MEAN), jnp.full(1, LOG_LENGTH_MEAN))
    draws = jax.jit(lambda: jax.lax.scan(step, first, jax.random.split(jax.random.key(0), 30_000))[1])()
    signal, length = integrate_on_a_grid(statistics)
    for drawn, exact, tolerance in ((draws.log_signal, signal, 0.3), (draws.log_lengths, length, 0.05)):
        found = drawn[1000:].mean(), drawn[1000:].std()
        np.testing.assert_allclose(found, exact, atol=tolerance)


@pytest.mark.slow
def test_the_posterior_belongs_to_the_hyperparameters(rng):
    statistics, first = draw_statistics(rng), Hyperparameters(np.array(3.0), np.zeros(1))
    for key in jax.random.split(jax.random.key(1), 5):
        new, posterior = step_hyperparameters(key, first, BASIS, PROCESS, statistics)
        expected = update_weights(make_weight_prior(new, BASIS, PROCESS), statistics)
        np.testing.assert_allclose(posterior.mean, expected.mean, rtol=1e-8)


def test_outputs_in_front_of_the_hidden_states_have_no_influence(rng):
    basis = LaplaceBasis.build(np.array([3.0, 2.0]), 5)  # one hidden state and one input
    hidden, inputs = rng.normal(size=(2, 7, 1))
    alone = compute_features(basis, hidden, inputs)
    behind = compute_features(basis, np.hstack([rng.normal(size=(7, 2)), hidden]), inputs)
    np.testing.assert_allclose(alone, behind, rtol=1e-12, atol=1e-13)
