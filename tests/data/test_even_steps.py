import numpy as np
import pytest

from revarb.data.even_steps import find_gaps, is_same_interval, measure_steps


def test_even_steps():
    steps = measure_steps(0.5 * np.arange(5.0))
    assert steps.interval == steps.usual == 0.5 and steps.deviation == 0.0 and steps.uneven is None


@pytest.mark.parametrize(
    ("seconds", "row"),
    [
        ([0.0, 1.0, 2.0, 4.0, 5.0], 3),  # a gap
        ([0.0, 1.0, 1.0, 2.0, 3.0], 2),  # twice the same
        ([3.0, 2.0, 1.0], 1),  # backwards
    ],
)
def test_the_first_uneven_step(seconds, row):
    assert measure_steps(np.array(seconds)).uneven == row


def test_jitter_is_measured():
    steps = measure_steps(np.array([0.0, 1.0, 2.04, 3.0, 4.0]))
    assert steps.uneven is None and steps.deviation == pytest.approx(0.04)
    assert measure_steps(np.array([0.0, 1.0, 2.06, 3.0, 4.0])).uneven == 2


@pytest.mark.parametrize(
    ("seconds", "rows"),
    [
        ([0.0, 1.0, 2.0, 4.0, 5.0], [3]),
        ([0.0, 1.0, 2.5, 3.5, 9.0, 10.0, 11.0], [2, 4]),
        ([0.0, 1.0, 9.0], [2]),  # the usual one of two steps is the shorter one
        ([0.0, 1.0, 2.04, 3.0, 4.0], []),  # jitter
        ([0.0, 1.0, 1.0, 2.0, 1.5, 2.5], []),  # repeated, or backwards
        ([3.0, 2.0, 1.0, 9.0], []),
    ],
)
def test_gaps_are_steps_forward_that_are_too_long(seconds, rows):
    assert find_gaps(np.array(seconds)).rows == rows


def test_intervals_that_are_the_same():
    assert is_same_interval(1.0005, 1.0) and not is_same_interval(1.01, 1.0)
