"""Samples that look like outliers at first sight."""

import numpy as np
import pytest

from revarb.data.series import Series
from revarb.data.suspects import mark_suspects, mask_suspects


def make_signal(samples=300, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    time = np.arange(samples)
    return np.sin(time / 7.0)[:, None] + noise * rng.normal(size=(samples, 1))


def test_a_clean_record_has_none():
    assert not mark_suspects([make_signal()])[0].any()


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_planted_spikes_are_found(share):
    rng, y = np.random.default_rng(1), make_signal()
    planted = rng.choice(len(y), int(share * len(y)), replace=False)
    y[planted, 0] += rng.choice([-1.0, 1.0], len(planted)) * rng.uniform(3.0, 6.0, len(planted)) * y.std()
    marks = mark_suspects([y])[0][:, 0]
    assert marks[planted].mean() >= 0.9 and np.delete(marks, planted).mean() <= 0.03


def test_the_neighbours_of_a_spike_are_not_taken_with_it():
    y = make_signal()
    y[100] += 5.0
    assert np.flatnonzero(mark_suspects([y])[0]).tolist() == [100]


def test_a_step_is_no_spike():
    y = np.repeat([0.0, 1.0, -1.0, 2.0], 50)[:, None] + make_signal(200, 0.02) * 0.01
    assert not mark_suspects([y])[0].any()


def test_outputs_and_records_are_apart_and_gaps_stay():
    first, second = np.hstack([make_signal(), make_signal(seed=1)]), np.hstack([make_signal(80), make_signal(80)])
    first[50, 1], first[20, 0] = 9.0, np.nan
    records = mask_suspects([Series(np.zeros((len(y), 0)), y) for y in (first, second)])
    assert np.argwhere(np.isnan(records[0].y)).tolist() == [[20, 0], [50, 1]]
    assert not np.isnan(records[1].y).any()


def test_units_do_not_matter():
    y = make_signal()
    y[[40, 90]] += 3.0
    marks = mark_suspects([y])[0]
    np.testing.assert_array_equal(mark_suspects([1e6 * y - 4e5])[0], marks)


def test_two_samples_and_constant_outputs_are_no_problem():
    assert not mark_suspects([np.array([[0.0], [1.0]]), np.full((5, 1), 2.0)])[0].any()
    assert not mark_suspects([np.full((9, 1), np.nan)])[0].any()


def test_a_record_without_the_output_does_not_hide_those_of_others():
    y = make_signal()
    y[100] += 5.0
    marks = mark_suspects([y, np.full((40, 1), np.nan)])
    assert np.flatnonzero(marks[0]).tolist() == [100] and not marks[1].any()
