"""Runs that leave what is known: their distance from a run that is held inside, and the band that is wider by it."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.data.series import Window
from revarb.fitting.arx import ARX
from revarb.models.ensemble import Ensemble
from revarb.simulation.extrapolation import DOUBT
from support import small

RECORD = small.record(samples=200)
ROWS = np.arange(60)
INSIDE = 0.5 * np.sin(1.5 * ROWS)
BEYOND = np.where((ROWS >= 20) & (ROWS < 40), np.where(ROWS < 25, -3.0, 3.0), INSIDE)


@pytest.fixture(scope="module")
def linear():
    return ARX(2, 2).fit(RECORD)


def run_linear(model, u, held=None):
    """A linear model by a plain loop, z-scored, from past values of zero; held above the lower ends or below the upper.

    `held` is min or max: what keeps a value from going beyond an end.
    """
    states, inputs, order = *model.known_range, model.order
    end, limit = ("low", min) if held is max else ("high", max)
    z = model.scaling.inputs(u[:, None])[:, 0]
    if held is not None:
        z = np.array([held(value, getattr(inputs, end)[0]) for value in z])
    z = np.concatenate([np.zeros(order.reach), z])
    past, outputs = [0.0] * order.lags, []
    for row in range(len(u)):
        newest = row + order.reach - order.input_delay
        regressors = np.array([*past, *(z[newest - age] for age in range(order.input_lags))])
        y = float((regressors @ np.asarray(model.model.coefficients) + np.asarray(model.model.offset))[0])
        outputs.append(y)
        new = y if held is None else held(y, limit(getattr(states, end)[0], *past))
        past = [new, *past[:-1]]
    return np.array(outputs)


def doubt_of(model, u, **options):
    """What the band is wider by, beside that of the same model without ranges."""
    path = model.simulate(u, **options)
    prep = replace(model.preprocessor, input_range=None, output_range=None)
    return np.sqrt(path.std**2 - replace(model, preprocessor=prep).simulate(u, **options).std ** 2)[:, 0]


def test_the_band_is_wider_by_the_distance_from_a_run_that_is_held_inside(linear):
    """By a plain loop; nothing inside, and nothing once the system has forgotten."""
    free, raised, lowered = (run_linear(linear, BEYOND, held) for held in (None, max, min))
    expected = DOUBT * np.hypot(free - raised, free - lowered) * linear.scaling.y_std[0]
    np.testing.assert_allclose(doubt_of(linear, BEYOND), expected, atol=1e-7)
    assert expected[:20].max() < 1e-9 < 0.5 < expected[30] / RECORD.y.std() and expected[-1] < 0.01 * expected[30]
    assert not doubt_of(linear, INSIDE).max() > 1e-7


def test_what_was_measured_before_the_run_is_known(linear):
    """Outputs far out that were measured: the held run does not jump back into the range."""
    far = 3.0 * RECORD.y.max()
    doubt = doubt_of(linear, INSIDE[9:], start=Window(INSIDE[:9], np.full(9, far)))
    assert doubt.max() < 1e-6 * far


@pytest.mark.parametrize("kind", ["linear", "recurrent", "mixture"])
def test_marks_and_bands_of_a_run_beyond(linear, shallow_model, kind):
    model = {"linear": linear, "recurrent": shallow_model}.get(kind)
    model = model or Ensemble.from_candidates([ARX(2, 2).fit(small.record(samples=80)), shallow_model])
    with pytest.warns(UserWarning, match="input 'u' leaves its training range"):
        path = model.simulate(BEYOND)
    inside = model.simulate(INSIDE)
    assert inside.extrapolates_from is None and inside.warning is None
    assert path.input_extrapolates[:, 0].tolist() == [20 <= row < 40 for row in ROWS]
    assert path.extrapolates_from == 20 and "input 'u' from row 20 on" in path.warning
    assert path.state_extrapolates.dtype == bool and not path.state_extrapolates[:20].any()
    np.testing.assert_allclose(path.std[:20], inside.std[:20], rtol=1e-9)
    assert path.std[30, 0] > 2.0 * inside.std[30, 0]


def test_trajectories_keep_their_doubt_along_the_run(shallow_model):
    """One draw for each of them: beyond, they are as far apart as the band is wide, and their order stays."""
    path = shallow_model.simulate(BEYOND, "samples", samples=400, seed=3)
    spread = path.samples.std(axis=0, ddof=1)
    np.testing.assert_allclose(spread[35], path.std[35], rtol=0.2)
    ranks = [path.samples[:, row, 0].argsort().argsort() for row in (32, 36)]
    assert np.corrcoef(*ranks)[0, 1] > 0.7
    np.testing.assert_array_equal(path.samples, shallow_model.simulate(BEYOND, "samples", samples=400, seed=3).samples)
