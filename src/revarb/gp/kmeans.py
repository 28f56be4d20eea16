"""k-means clustering with several starts by greedy k-means++.

Without ties the centres are those of `scipy.cluster.vq.kmeans2`. Where a point is equally far from two centres, as in
records on a coarse grid, the last bit of a matrix product decides, which depends on the processor and its BLAS: the
clusters can then differ, and are as tight.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from scipy.spatial.distance import cdist

FEW_COLUMNS = 4  # up to this number squared distances are sums of squared differences, else they are expanded
TABLE_ROWS = 1000  # up to this number the distances of all pairs of rows are stored: 8 MB


class Clusters(NamedTuple):
    """Centres, and the sum of the squared distances of all points from the nearest."""

    centres: Float64[np.ndarray, "M D"]
    spread: float


def find_centres(
    points: Float64[np.ndarray, "R D"], count: int, iterations: int, starts: int, rng: np.random.Generator
) -> Float64[np.ndarray, "M D"]:
    """Find the centres of k-means clusters; of several starts the one with the smallest squared distances is taken."""
    measure = _prepare_squares(points)
    results = [_iterate(points, seeds, iterations, measure) for seeds in draw_seeds(points, count, starts, rng)]
    return min(results, key=lambda clusters: clusters.spread).centres


def _iterate(
    points: np.ndarray, centres: np.ndarray, iterations: int, measure: Callable[[np.ndarray], np.ndarray]
) -> Clusters:
    squares = measure(centres)
    labels = squares.argmin(axis=1)
    for _ in range(iterations):
        centres, previous = _compute_means(points, labels, centres), labels
        squares = measure(centres)
        labels = squares.argmin(axis=1)
        if np.array_equal(labels, previous):
            break
    return Clusters(centres, float(np.sum(squares[np.arange(len(points)), labels].clip(min=0.0))))


def _compute_means(points: np.ndarray, labels: np.ndarray, centres: np.ndarray) -> np.ndarray:
    # An empty cluster keeps its last centre, which is a valid inducing input. `bincount` adds in the order of the rows.
    entries = labels[:, None] * points.shape[1] + np.arange(points.shape[1])
    sums = np.bincount(entries.ravel(), points.ravel(), centres.size).reshape(centres.shape)
    sizes = np.bincount(labels, minlength=len(centres))[:, None]
    return np.where(sizes > 0, sums / np.maximum(sizes, 1), centres)


def _prepare_squares(points: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    # Makes the function from centres to their squared distances, one row per point.
    if points.shape[1] <= FEW_COLUMNS:
        return lambda centres: cdist(points, centres, "sqeuclidean")
    expanded = np.column_stack([points, _sum_squares(points), np.ones(len(points))])

    def measure(centres: np.ndarray) -> np.ndarray:
        return expanded @ np.column_stack([-2.0 * centres, np.ones(len(centres)), _sum_squares(centres)]).T

    return measure


def _sum_squares(points: np.ndarray) -> np.ndarray:
    return np.square(points.T, order="C").sum(axis=0)  # one column after the other, not pairwise


def draw_seeds(
    points: Float64[np.ndarray, "R D"], count: int, starts: int, rng: np.random.Generator
) -> Float64[np.ndarray, "S M D"]:
    """Draw the initial centres by greedy k-means++: points far from the centres so far, each the best of a few.

    Arthur & Vassilvitskii 2007; the greedy choice is described in their section 6. All starts advance together.
    """
    candidates, every_start = 2 + int(np.log(count)), np.arange(starts)
    draws = [(rng.integers(len(points)), rng.random((count - 1, candidates))) for _ in range(starts)]
    chosen = [np.array([first for first, _ in draws])]
    nearest = np.sum((points - points[chosen[0]][:, None]) ** 2, axis=2)
    measure = _prepare_distances(points)
    for uniform in np.stack([later for _, later in draws], axis=1):
        drawn = _draw_rows(nearest, uniform)
        distances = measure(drawn.ravel()).reshape(starts, candidates, -1)
        np.minimum(distances, nearest[:, None], out=distances)
        best = distances.sum(axis=2).argmin(axis=1)
        chosen.append(drawn[every_start, best])
        nearest = distances[every_start, best]
    return points[np.stack(chosen, axis=1)]


def _draw_rows(weights: Float64[np.ndarray, "S R"], uniform: Float64[np.ndarray, "S C"]) -> Int64[np.ndarray, "S C"]:
    # Rows with a probability in proportion to their weight; the last row if all weights are zero, which they are when
    # every distinct row is a centre already.
    cumulated = np.cumsum(weights, axis=1)
    levels = cumulated[:, -1:] * uniform
    pairs = zip(cumulated[:, :-1], levels, strict=True)
    return np.array([sums.searchsorted(level, side="right") for sums, level in pairs])


def _prepare_distances(points: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    # Makes the function from the numbers of rows to their squared distances from all points.
    norms = np.sum(points**2, axis=1)

    def measure(rows: np.ndarray) -> np.ndarray:
        squares = norms[rows, None] + norms
        squares -= 2.0 * points[rows] @ points.T
        return np.maximum(squares, 0.0, out=squares)

    if len(points) > TABLE_ROWS:
        return measure
    table = measure(np.arange(len(points)))
    return lambda rows: table[rows]
