"""The one-standard-error rule: of the candidates that cannot be told from the best one, the simplest."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from revarb.errors import ComputationError
from revarb.fitting.held_out import log_errors


def compare_with_best(errors: Float64[np.ndarray, "C B"]) -> tuple[int, np.ndarray, np.ndarray]:
    """The best candidate; for each one the mean of log(error / error of the best), and its standard error.

    The errors are compared block by block: what makes a block hard for all candidates drops out.
    """
    logs = log_errors(errors)
    scores = logs.mean(axis=1)
    best = int(np.argmin(scores))
    if not np.isfinite(scores[best]):
        raise ComputationError("the held-out simulations of all candidates diverged")
    with np.errstate(invalid="ignore"):
        differences = logs - logs[best]
        count = errors.shape[1]
        deviations = differences.std(axis=1, ddof=1) / np.sqrt(count) if count > 1 else np.zeros(len(errors))
    return best, differences.mean(axis=1), np.where(np.isfinite(deviations), deviations, 0.0)


def find_simplest(errors: Float64[np.ndarray, "C B"], complexity: Sequence[Any]) -> int:
    """The simplest candidate whose errors are within one standard error of those of the best one."""
    best, differences, deviations = compare_with_best(errors)
    close = [number for number in range(len(errors)) if number == best or differences[number] <= deviations[number]]
    return min(close, key=lambda number: (complexity[number], differences[number]))
