"""How an optimisation ended, and its steps."""

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """How an optimisation ended."""

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration limit"  # the usual end of recipe R0
    STALLED = "stalled"  # the line search found no better point in floating-point arithmetic
    INTERRUPTED = "interrupted"  # by Ctrl-C
    NOT_FINITE = "not finite"  # every step from the best point ran into NaN


class Step(NamedTuple):
    """One iteration: stages and iterations count from 1."""

    stage: int
    iteration: int
    bound: float
