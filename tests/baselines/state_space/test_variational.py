"""Bound of GP state-space models: below the exact evidence of a linear system, reached at its posterior; gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from revarb.baselines.state_space import variational
from revarb.baselines.state_space.transition import Transition, start_transition
from revarb.baselines.state_space.variational import (
    STRUCTURES,
    Corrections,
    RecognisedStart,
    guess_states,
    start_corrections,
)
from revarb.gp.layer import Layer, Linear, inverse_softplus
from revarb.runtime.numerics import with_numerics
from support import small
from support.linear_systems import LinearSystem

SYSTEM = LinearSystem(a=0.8, b=0.5, q=0.1, r=0.2)
TINY = 1e-9  # kernel variance of an f that is linear


def raw(value):
    with jax.enable_x64(True):
        return np.asarray(inverse_softplus(value))


def linear_transition():
    """The transition of the linear system: a GP without variance, and q(v) at its prior."""
    layer = Layer(np.zeros((1, 2)), np.ones(2), raw(TINY), raw(SYSTEM.q))
    stacked = jax.tree.map(lambda leaf: leaf[None], layer)
    linear = Linear(np.array([[SYSTEM.a], [SYSTEM.b]]), np.zeros(1))
    return Transition(stacked, np.zeros((1, 1)), np.zeros((1, 1, 1)), linear, raw(SYSTEM.r)[None])


@pytest.fixture
def data(rng):
    u = rng.normal(size=12)
    return u, SYSTEM.simulate(u, rng)


def exact_chain(u, y):
    """q(x) at the exact posterior: its first state, and its transitions x_t = gain x_{t−1} + shift + noise."""
    mean, cov = SYSTEM.posterior(u, y)
    before, now = np.diag(cov)[:-1], np.diag(cov)[1:]
    cross = np.diag(cov, k=1)
    gain = np.concatenate([[0.0], cross / before])
    shift = np.concatenate([[0.0], mean[1:] - cross / before * mean[:-1]])
    variance = np.concatenate([[1.0], now - cross**2 / before])
    corrections = Corrections(gain[:, None, None], shift[:, None], raw(variance)[:, None])
    return RecognisedStart(Linear(np.zeros((1, 1)), mean[:1]), raw(cov[:1, 0])), corrections


def estimate(start, corrections, u, y, structure, samples=20_000):
    segment = jax.tree.map(lambda leaf: leaf[None], corrections)
    segments = variational.Segments(u[None, :, None], y[None, :, None], np.zeros((1, 1)), segment)
    parameters = variational.SSMParameters(linear_transition(), start, corrections)
    return float(
        variational.estimate_elbo(parameters, segments, len(y), STRUCTURES[structure], samples, jax.random.key(0))
    )


@pytest.mark.parametrize("structure", [pytest.param("mean-field", marks=pytest.mark.slow), "markov"])
@with_numerics
def test_the_exact_posterior_reaches_the_evidence(structure, data):
    """f_t = a x_{t−1} + b u_t is known, so the same chain can be written as a correction of f_t."""
    u, y = data
    start, chain = exact_chain(u, y)
    if structure == "markov":
        gain = chain.gain / SYSTEM.a
        chain = Corrections(gain, chain.shift - gain[..., 0] * (SYSTEM.b * u[:, None]), chain.raw_variance)
    assert abs(estimate(start, chain, u, y, structure) - SYSTEM.log_evidence(u, y)) < 0.05


@with_numerics
@pytest.mark.parametrize("structure", STRUCTURES)
def test_anywhere_else_the_bound_is_below_the_evidence(structure, data):
    u, y = data
    start = RecognisedStart(Linear(np.zeros((1, 1)), y[:1]), raw(np.array([0.2])))
    corrections = start_corrections(structure, y[:, None])
    assert estimate(start, corrections, u, y, structure) < SYSTEM.log_evidence(u, y) - 0.1


@with_numerics
def test_a_missing_output_is_left_out(data):
    """At the exact posterior of a record that ends earlier, the later states at their prior."""
    u, y = data
    start, corrections = exact_chain(u[:-1], y[:-1])
    free = Corrections(np.array([[[SYSTEM.a]]]), np.array([[SYSTEM.b * u[-1]]]), raw(np.array([[SYSTEM.q]])))
    joined = jax.tree.map(lambda a, b: np.concatenate([a, b]), corrections, free)
    found = estimate(start, joined, u, np.append(y[:-1], np.nan), "mean-field")
    # The bound is per sample of the record, and the missing one counts as a sample.
    assert abs(found - SYSTEM.log_evidence(u[:-1], y[:-1])) < 0.05


@with_numerics
def test_a_correction_that_changes_nothing_follows_the_prior(rng):
    x, u = rng.normal(size=(30_000, 1)), rng.normal(size=(30_000, 1))
    drawn, ones = linear_transition().draw(jax.random.key(0), len(x)), np.ones((len(x), 1))
    nothing = Corrections(ones[..., None], 0.0 * ones, raw(SYSTEM.q) * ones)
    free, corrected = (
        follow(drawn, variational.SampledStep(x, u, nothing), jax.random.key(1))
        for follow in (variational.follow_prior, variational.follow_corrected)
    )
    np.testing.assert_allclose(corrected.divergence, 0.0, atol=1e-12)
    np.testing.assert_allclose(corrected.x.mean(), free.x.mean(), atol=0.01)
    np.testing.assert_allclose(corrected.x.var(), free.x.var(), rtol=0.03)


@with_numerics
def test_gradients_are_finite_differences_with_common_random_numbers(rng):
    x, u = rng.normal(size=(20, 2)), rng.normal(size=(20, 1))
    transition = start_transition(x, u, 1, np.arange(1, 20), 5, True, rng)
    start = RecognisedStart(Linear(rng.normal(size=(3, 2)), rng.normal(size=2)), raw(np.full(2, 0.1)))
    corrections = start_corrections("markov", x[:8])
    parameters = jax.tree.map(jnp.asarray, variational.SSMParameters(transition, start, corrections))

    def bound(parameters):
        each = jax.tree.map(lambda leaf: leaf[None], parameters.corrections)
        segments = variational.Segments(u[None, :8], x[None, :8, :1], np.ones((1, 3)), each)
        return variational.estimate_elbo(parameters, segments, 8, STRUCTURES["markov"], 3, jax.random.key(0))

    bound = jax.jit(bound)
    slope = jax.grad(bound)(parameters)
    for seed in range(3):
        direction = jax.tree.map(lambda leaf, s=seed: np.random.default_rng(s).normal(size=leaf.shape), parameters)
        ahead, behind = (
            bound(jax.tree.map(lambda leaf, step, h=h: leaf + h * step, parameters, direction)) for h in (1e-6, -1e-6)
        )
        along = sum(jax.tree.leaves(jax.tree.map(lambda a, b: jnp.sum(a * b), slope, direction)))
        np.testing.assert_allclose(along, (ahead - behind) / 2e-6, rtol=1e-4)


@pytest.mark.parametrize("states", [1, 2, 3])
def test_guessed_states_are_the_outputs_and_differences_of_unit_variance(states):
    y = small.record().y
    guess = guess_states([y], states)
    np.testing.assert_array_equal(guess[:, :1], y)
    np.testing.assert_allclose(guess[:, 1:].std(axis=0), np.ones(states - 1))
