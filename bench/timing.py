"""Medians of repeated calls."""

import time
from collections.abc import Callable
from statistics import median

ROUNDS = 3
WARM_UPS = 2
REPETITIONS = 7


def median_seconds(evaluate: Callable[[], object], repetitions: int = REPETITIONS) -> float:
    """Median time of a call, once it is compiled and its caches are full."""
    for _ in range(WARM_UPS):
        evaluate()
    return median(_seconds(evaluate) for _ in range(repetitions))


def alternating_medians(timings: list[Callable[[], float]]) -> list[float]:
    """Medians of several timings that take turns: what else the machine does should favour none of them.

    Each timing is a run of calls, warm-ups first: threads of the one before may still be waiting for work.
    """
    rounds = [[timing() for timing in timings] for _ in range(ROUNDS)]
    return [median(column) for column in zip(*rounds, strict=True)]


def _seconds(evaluate: Callable[[], object]) -> float:
    begin = time.perf_counter()
    evaluate()
    return time.perf_counter() - begin
