"""Start values of GP state-space models: states of an ARX model in observer canonical form, and differences."""

import numpy as np
import pytest

from revarb.baselines.state_space.initial_states import compute_observer_states, guess_states
from support import small


def simulate(rng, samples):
    """Third order, one input."""
    u, y = rng.normal(size=(samples, 1)), np.zeros((samples + 3, 1))
    for t in range(samples):
        y[t + 3] = 1.2 * y[t + 2] - 0.5 * y[t + 1] + 0.1 * y[t] + u[t] + (0.5 * u[t - 1] if t else 0.0)
    return u, y[3:]


def test_the_states_of_a_linear_system_follow_a_linear_transition(rng):
    """Exactly, and without the past: x_t is linear in x_{t−1} and ū_t."""
    records = [simulate(rng, 60), simulate(rng, 40)]
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


def test_a_constant_output_gives_finite_states_and_guessed_differences_have_unit_variance():
    for states in (2, 3):
        np.testing.assert_allclose(guess_states([small.record().y], states)[:, 1:].std(axis=0), 1.0)
    [x] = compute_observer_states([np.zeros((20, 1))], [np.zeros((20, 1))], 3)
    np.testing.assert_array_equal(x, 0.0)
