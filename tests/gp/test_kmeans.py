"""k-means: the best of several starts, separate clusters, repeated points."""

import numpy as np

from revarb.gp.kmeans import draw_seeds, find_centres


def spread(points, centres):
    return np.sum(np.min(np.sum((points[:, None] - centres) ** 2, axis=2), axis=1))


def test_kmeans_takes_the_tightest_of_its_starts(rng):
    points = rng.normal(size=(80, 2))
    one = [spread(points, find_centres(points, 10, 30, 1, np.random.default_rng(seed))) for seed in range(8)]
    many = spread(points, find_centres(points, 10, 30, 12, np.random.default_rng(0)))
    assert many <= np.median(one)
    assert many < max(one)


def test_kmeans_finds_separate_clusters(rng):
    truth = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    points = np.repeat(truth, 20, axis=0) + 0.1 * rng.normal(size=(60, 2))
    centres = find_centres(points, 3, 20, 1, rng)
    nearest = np.linalg.norm(truth[:, None] - centres, axis=2).min(axis=1)
    np.testing.assert_array_less(nearest, 0.2)


def test_points_may_be_repeated(rng):
    assert draw_seeds(np.ones((5, 2)), 4, rng).shape == (4, 2)
