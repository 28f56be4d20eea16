"""Generated benchmarks: Artificial, and two tanks."""

import numpy as np
import pytest
from scipy.io import loadmat

from revarb import datasets
from revarb.datasets import generated
from revarb.datasets.generated import simulate_artificial, simulate_two_tanks


def test_artificial_is_generated_from_a_seed():
    split, again, other = (datasets.load("artificial", seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(split.train.y, again.train.y)
    assert not np.array_equal(split.train.y, other.train.y)
    np.testing.assert_array_equal(split.test.y, other.test.y)
    assert (len(split.train), len(split.test), split.lags, split.skip) == (300, 300, 5, 10)
    assert np.abs(split.train.u).max() <= 2.5
    noise = split.train.y[:, 0] - simulate_artificial(split.train.u[:, 0])
    assert noise.std() == pytest.approx(0.3, rel=0.15)


def test_the_generator_reproduces_the_recorded_file(recorded_data):
    file = loadmat(datasets.fetch("artificial_recorded"))
    split = datasets.load("artificial_recorded")
    np.testing.assert_allclose(simulate_artificial(split.test.u[:, 0]), split.test.y[:, 0], atol=1e-12)
    clean = split.train.y[:, 0] - file["n"].ravel()
    np.testing.assert_allclose(simulate_artificial(split.train.u[:, 0]), clean, atol=1e-7)
    np.testing.assert_allclose(split.test.u, datasets.load("artificial").test.u, atol=1e-12)


def test_two_tanks_are_generated_from_a_seed():
    split, again, other = (datasets.load("two_tanks", seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(split.train.y, again.train.y)
    assert not np.array_equal(split.train.u, other.train.u) and not np.array_equal(split.test.u, other.test.u)
    assert (len(split.train), len(split.test), split.train.dt) == (400, 400, generated.DT)
    for record in (split.train, split.test):
        noise = record.y[:, 0] - simulate_two_tanks(record.u[:, 0])
        assert noise.std() == pytest.approx(generated.NOISE_STD, rel=0.15)
    for split in (datasets.load("two_tanks", seed=seed) for seed in range(10)):
        assert split.train.u.min() <= split.test.u.min() and split.test.u.max() <= split.train.u.max()


def test_levels_at_rest_follow_torricelli_a_closed_pump_drains_and_a_strong_one_overflows():
    outflow = generated.OUTLET * np.sqrt(2.0 * generated.GRAVITY * simulate_two_tanks(np.full(20, 3.0)))
    np.testing.assert_allclose(outflow, generated.PUMP * 3.0)
    assert simulate_two_tanks(np.concatenate([[5.0], np.zeros(100)]))[-1] == pytest.approx(0.0, abs=1e-3)
    assert simulate_two_tanks(np.full(50, 8.0)).max() == generated.HEIGHT
