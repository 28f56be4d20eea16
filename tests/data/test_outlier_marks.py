"""Outliers by their neighbours in time."""

import numpy as np
import pytest

from revarb.data.series import Series
from revarb.data.training_records import mark_outliers, mask_outliers


def make_signal(samples=300, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    time = np.arange(samples)
    return np.sin(time / 7.0)[:, None] + noise * rng.normal(size=(samples, 1))


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_planted_outliers_are_found(share):
    rng, y = np.random.default_rng(1), make_signal()
    planted = rng.choice(len(y), int(share * len(y)), replace=False)
    y[planted, 0] += rng.choice([-1.0, 1.0], len(planted)) * rng.uniform(3.0, 6.0, len(planted)) * y.std()
    marks = mark_outliers([y])[0][:, 0]
    assert marks[planted].mean() >= 0.9 and np.delete(marks, planted).mean() <= 0.03


def test_the_neighbours_of_an_outlier_are_kept_and_units_do_not_matter():
    y = make_signal()
    assert not mark_outliers([y])[0].any()
    y[[40, 100]] += 5.0
    for values in (y, 1e6 * y - 4e5):
        assert np.flatnonzero(mark_outliers([values])[0]).tolist() == [40, 100]
    with_empty = mark_outliers([y, np.full((40, 1), np.nan)])  # a record without the output does not hide others
    assert np.flatnonzero(with_empty[0]).tolist() == [40, 100] and not with_empty[1].any()


def test_steps_and_records_without_information_have_none():
    steps = np.repeat([0.0, 1.0, -1.0, 2.0], 50)[:, None] + make_signal(200, 0.02) * 0.01
    for outputs in ([steps], [np.array([[0.0], [1.0]]), np.full((5, 1), 2.0)], [np.full((9, 1), np.nan)]):
        assert not mark_outliers(outputs)[0].any()


def test_outputs_and_records_are_apart_and_gaps_stay():
    first, second = np.hstack([make_signal(), make_signal(seed=1)]), np.hstack([make_signal(80), make_signal(80)])
    first[50, 1], first[20, 0] = 9.0, np.nan
    records = mask_outliers([Series(np.zeros((len(y), 0)), y) for y in (first, second)])
    assert np.argwhere(np.isnan(records[0].y)).tolist() == [[20, 0], [50, 1]]
    assert not np.isnan(records[1].y).any()
