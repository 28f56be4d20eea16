"""Free simulation by every method: rows, checks, and the disagreement of samples and moments."""

import numpy as np
import pytest

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Window
from revarb.data.windows import Order
from revarb.errors import InputError
from revarb.simulation.chain import Chain
from revarb.simulation.moments import Moments
from revarb.simulation.run import _measure_disagreement, simulate_chain
from revarb.simulation.starts import Origin, make_standard_start
from support import small
from support.chains import exact_layer, make_layer


def test_simulation_has_a_row_per_input_row_and_the_start_is_forgotten(model):
    u = small.record(3, samples=60).u
    cold = model.simulate(u)
    warm = model.simulate(u, start=model.final_states[0])
    assert len(cold) == len(warm) == 60
    assert np.abs(cold.mean[0] - warm.mean[0]).max() > 1e-3
    np.testing.assert_allclose(cold.mean[-5:], warm.mean[-5:], atol=0.05)


def test_the_outputs_of_a_window_reduce_the_error(shallow_model):
    record = small.record(7, samples=160)
    errors = []
    for begin in range(0, 140, 7):
        seen, next_one = slice(begin, begin + 8), begin + 8
        for y in (record.y[seen], np.full((8, 1), np.nan)):
            path = shallow_model.simulate(record.u[next_one : next_one + 1], start=Window(record.u[seen], y))
            errors.append(float(path.mean[0, 0] - record.y[next_one, 0]) ** 2)
    known, unknown = np.mean(np.reshape(errors, (-1, 2)), axis=0)
    assert known < 0.9 * unknown


def test_training_waits_for_the_inputs_and_then_for_the_states():
    """L + L_u as in the paper; with a dead time the window fills later, and the rows that count wait for it."""
    late = Order(lags=2, input_lags=3, input_delay=9)
    assert (Order(2, 3, 1).skip, late.reach, late.skip) == (5, 11, 13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"u": np.zeros((20, 3))}, r"u has 3 column\(s\), but the model was trained with 1: \['u'\]"),
        ({"u": np.zeros((0, 1))}, "u has no rows; pass one row of inputs per step"),
        ({"u": [0.0, np.nan, 1.0, 2.0]}, "u has 1 value.*not finite"),
        ({"u": np.zeros((20, 1)), "method": "samples", "samples": 1}, "samples must be a whole number of at least 2"),
        ({}, r"pass the inputs \['u'\] as u"),
        ({"u": np.zeros((20, 1)), "steps": 20}, "and no steps"),
    ],
)
def test_wrong_simulations_are_refused(model, arguments, message):
    with pytest.raises(InputError, match=message):
        model.simulate(**arguments)


def test_a_system_without_inputs_needs_steps():
    model = small.spec().fit(small.record(inputs=0))
    assert len(model.simulate(steps=7)) == 7
    with pytest.raises(InputError, match=r"steps \(the model has no inputs"):
        model.simulate()
    with pytest.raises(InputError, match="the model has no inputs; pass steps="):
        model.simulate(np.zeros((7, 1)))


GRID = np.linspace(-4.0, 4.0, 33)[:, None]


def hand_made_run(targets, method):
    """Twelve steps, cold, of a system without inputs: one lag, and an exact GP of `targets` on the grid."""
    prep = Preprocessor.from_records([small.record(inputs=0)], Order(1, 0, 1))
    layer = exact_layer(make_layer(GRID, np.array([1.0]), 1.0, 0.02), targets)
    chain = Chain((layer,), None, 1)
    origin = Origin(make_standard_start(prep, chain), "cold")
    return simulate_chain(prep, chain, None, method, origin, steps=12, samples=500, seed=4)


def test_the_uncertainty_of_a_slow_system_accumulates():
    """An error of the function has the same sign at every step of a sample; moments treat steps as independent."""
    moments, samples = (hand_made_run(0.8 * GRID + 0.1, name) for name in ("moments", "samples"))
    assert samples.std[-1, 0] > 1.2 * moments.std[-1, 0]
    np.testing.assert_allclose(samples.std[0], moments.std[0], rtol=0.1)


def test_two_stable_states_give_a_warning_about_moments():
    """States below −0.5 go to −1.5, all others to 1: a Gaussian cannot represent both."""
    path = hand_made_run(np.where(GRID < -0.5, -1.5, 1.0), "samples")
    assert path.disagreement > 1.0
    assert f"their means are {path.disagreement:.2f} standard deviations apart; use the samples" in path.warning


def test_the_distance_to_the_moments():
    moments = Moments(np.zeros((4, 2)), np.full((4, 2), 4.0))
    mean, error = np.array([[9.0], [1.0], [1.0], [1.0]]) * np.ones(2), np.full((4, 2), 0.75)
    assert _measure_disagreement(mean, error, moments, skip=1) == pytest.approx(0.25)
    assert _measure_disagreement(mean, 2.0 * error, moments, skip=1) == 0.0, "no more than chance"
    assert _measure_disagreement(mean, error, moments, skip=4) is None, "nothing is left to score"
