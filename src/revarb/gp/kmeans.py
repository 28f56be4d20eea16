"""k-means clustering with several starts by greedy k-means++."""

import warnings

import numpy as np
from jaxtyping import Float64
from scipy.cluster.vq import kmeans2, vq

ITERATIONS_PER_CALL = 5  # after each call the centres are compared, to stop early


def find_centres(
    points: Float64[np.ndarray, "R D"], count: int, iterations: int, starts: int, rng: np.random.Generator
) -> Float64[np.ndarray, "M D"]:
    """Find the centres of k-means clusters; of several starts the one with the smallest squared distances is taken."""
    with warnings.catch_warnings():
        # An empty cluster keeps its last centre, which is a valid inducing input.
        warnings.filterwarnings("ignore", message="One of the clusters is empty")
        candidates = [_iterate(points, draw_seeds(points, count, rng), iterations) for _ in range(starts)]
    return min(candidates, key=lambda centres: float(np.sum(vq(points, centres)[1] ** 2)))


def _iterate(points: np.ndarray, centres: np.ndarray, iterations: int) -> np.ndarray:
    # A few iterations per call: kmeans2 itself does not stop when the centres no longer move, which is soon.
    for done in range(0, iterations, ITERATIONS_PER_CALL):
        previous = centres
        centres = kmeans2(points, centres, iter=min(ITERATIONS_PER_CALL, iterations - done), minit="matrix")[0]
        if np.array_equal(previous, centres):
            break
    return centres


def draw_seeds(points: Float64[np.ndarray, "R D"], count: int, rng: np.random.Generator) -> Float64[np.ndarray, "M D"]:
    """Draw the initial centres by greedy k-means++: points far from the centres so far, each the best of a few.

    Arthur & Vassilvitskii 2007; the greedy choice is described in their section 6.
    """
    candidates = 2 + int(np.log(count))
    chosen = [int(rng.integers(len(points)))]
    norms = np.sum(points**2, axis=1)
    nearest = np.sum((points - points[chosen[0]]) ** 2, axis=1)
    while len(chosen) < count:
        # If every distinct row is a centre already, all distances are zero: the last row is taken then.
        cumulated = np.cumsum(nearest)
        drawn = np.searchsorted(cumulated, cumulated[-1] * rng.random(candidates), side="right")
        drawn = drawn.clip(max=len(points) - 1)
        from_drawn = norms[drawn][:, None] + norms - 2.0 * points[drawn] @ points.T
        distances = np.minimum(nearest, np.maximum(from_drawn, 0.0))
        best = int(distances.sum(axis=1).argmin())
        chosen.append(int(drawn[best]))
        nearest = distances[best]
    return points[chosen]
