"""Status and steps of an optimisation."""

from enum import StrEnum
from typing import NamedTuple


class Status(StrEnum):
    """How an optimisation ended."""

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration limit"  # the usual end of recipe R0
    STALLED = "stalled"  # the line search found no better point in floating-point arithmetic
    INTERRUPTED = "interrupted"  # by Ctrl-C
    NOT_FINITE = "not finite"  # every step from the best point gave NaN or infinity

    @property
    def label(self) -> str:
        """The status as people read it; model files and results contain the value."""
        return "finished" if self is Status.ITERATION_LIMIT else self.value


class Step(NamedTuple):
    """One iteration of a stage, both counted from 1, and the bound after it."""

    stage: int
    iteration: int
    bound: float
