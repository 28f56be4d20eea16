"""k-means centres, from several starts by greedy k-means++."""

import warnings

import numpy as np
from jaxtyping import Float64
from scipy.cluster.vq import kmeans2, vq

ITERATIONS_PER_CALL = 5


def kmeans_centres(
    points: Float64[np.ndarray, "R D"], count: int, iterations: int, starts: int, rng: np.random.Generator
) -> Float64[np.ndarray, "M D"]:
    """Centres of k-means, the best of several starts by greedy k-means++."""
    with warnings.catch_warnings():
        # An empty cluster keeps its last centre, which is as good an inducing input as any.
        warnings.filterwarnings("ignore", message="One of the clusters is empty")
        tries = [_iterate(points, greedy_seeds(points, count, rng), iterations) for _ in range(starts)]
    return min(tries, key=lambda centres: float(np.sum(vq(points, centres)[1] ** 2)))


def _iterate(points: np.ndarray, centres: np.ndarray, iterations: int) -> np.ndarray:
    # A few iterations at a time: kmeans2 would go on when nothing moves any more, which is soon.
    for done in range(0, iterations, ITERATIONS_PER_CALL):
        before = centres
        centres = kmeans2(points, centres, iter=min(ITERATIONS_PER_CALL, iterations - done), minit="matrix")[0]
        if np.array_equal(before, centres):
            break
    return centres


def greedy_seeds(
    points: Float64[np.ndarray, "R D"], count: int, rng: np.random.Generator
) -> Float64[np.ndarray, "M D"]:
    """k-means++: seeds drawn far from those already there, each the best of a few candidates.

    Arthur & Vassilvitskii 2007; the greedy choice is their section 6.
    """
    candidates = 2 + int(np.log(count))
    chosen = [int(rng.integers(len(points)))]
    norms = np.sum(points**2, axis=1)
    nearest = np.sum((points - points[chosen[0]]) ** 2, axis=1)
    while len(chosen) < count:
        # Where rows repeat, all may be taken already, and no distance is left: the last one will do then.
        shares = np.cumsum(nearest)
        drawn = np.searchsorted(shares, shares[-1] * rng.random(candidates), side="right").clip(max=len(points) - 1)
        from_drawn = norms[drawn][:, None] + norms - 2.0 * points[drawn] @ points.T
        distances = np.minimum(nearest, np.maximum(from_drawn, 0.0))
        best = int(distances.sum(axis=1).argmin())
        chosen.append(int(drawn[best]))
        nearest = distances[best]
    return points[chosen]
