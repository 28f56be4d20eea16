import numpy as np
import pytest
from scipy.io import loadmat

from revarb import datasets
from revarb.datasets.artificial import simulate_artificial


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
