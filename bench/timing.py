"""Medians of repeated calls."""

import time
from collections.abc import Callable
from statistics import median

ROUNDS = 3
WARM_UPS = 2
REPETITIONS = 7


def time_median(evaluate: Callable[[], object], repetitions: int = REPETITIONS) -> float:
    """Median time of a call, after warm-up calls."""
    for _ in range(WARM_UPS):
        evaluate()
    return median(_seconds(evaluate) for _ in range(repetitions))


def time_alternately(timings: list[Callable[[], float]]) -> list[float]:
    """Medians of several timings that alternate, so that other load on the machine affects all of them.

    Each timing starts with warm-up calls: threads of the one before may still be spinning.
    """
    rounds = [[timing() for timing in timings] for _ in range(ROUNDS)]
    return [median(column) for column in zip(*rounds, strict=True)]


def _seconds(evaluate: Callable[[], object]) -> float:
    begin = time.perf_counter()
    evaluate()
    return time.perf_counter() - begin
