"""Staged maximisation by L-BFGS-B over one flat float64 vector, robust against interrupts and non-finite values."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Bool, Float64
from scipy.optimize import OptimizeResult, minimize

from revarb.errors import ComputationError
from revarb.models.recipe import Status, Step
from revarb.runtime.interrupts import capture_interrupts

Tree = TypeVar("Tree")
Vector = Float64[np.ndarray, " V"]
Objective = Callable[[Vector], tuple[float, Vector]]
"""A function from a flat vector to the bound, which is maximised, and its gradient."""


class Optimum(NamedTuple):
    """The best point that was evaluated (at least as good as the start), and how the optimisation ended."""

    vector: Vector
    bound: float
    status: Status
    history: tuple[Step, ...]


class Phase(NamedTuple):
    """A stage of the optimisation: which entries of the vector are free, and the largest number of iterations."""

    free: Bool[np.ndarray, " V"]
    iterations: int


class Settings(NamedTuple):
    """Settings of L-BFGS-B: corrections kept, and the relative change of the bound and the gradient to stop at."""

    memory: int
    ftol: float
    gtol: float


DEFAULT_SETTINGS = Settings(memory=20, ftol=1e-9, gtol=1e-5)


def maximise(
    objective: Objective,
    start: Vector,
    phases: Sequence[Phase],
    settings: Settings,
    report: Callable[[Step], None],
    first_stage: int = 1,
) -> Optimum:
    """Maximise the objective in phases, each from the best point so far and with an empty L-BFGS memory.

    Phases are counted from `first_stage` in the steps. Ctrl-C and non-finite values end it early; the best point so far
    is returned with the status.
    """
    with capture_interrupts() as pressed:
        tracker = _Tracker(objective, start)
    if pressed:
        return Optimum(tracker.vector, tracker.bound, Status.INTERRUPTED, ())
    history: list[Step] = []
    status = Status.CONVERGED

    def record(step: Step) -> None:
        history.append(step)
        report(step)

    try:
        for number, phase in enumerate(phases, start=first_stage):
            status = _run_phase(tracker, phase, settings, number, record)
            if status is Status.NOT_FINITE:
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return Optimum(tracker.vector, tracker.bound, status, tuple(history))


class _Tracker:
    """Evaluates the objective and keeps the best point. The start is evaluated first and must be finite."""

    def __init__(self, objective: Objective, start: Vector):
        self._objective = objective
        self.vector = start.copy()
        self.bound, self.gradient = objective(start)
        self.met_nan = False  # since the last better point
        if not _is_finite(self.bound, self.gradient) or not np.isfinite(start).all():
            raise ComputationError(
                f"the bound is {self.bound} at the start of the fit, before any step; "
                "for an RGP, use a larger recipe.jitter or recipe.zeta_noise, which separates the inducing inputs"
            )

    def evaluate_negative(self, vector: Vector) -> tuple[float, Vector]:
        """Evaluate minus the bound and its gradient, which L-BFGS-B minimises."""
        bound, gradient = self._objective(vector)
        if not _is_finite(bound, gradient):
            self.met_nan = True
            return self._evaluate_barrier(vector)
        if bound > self.bound:
            self.vector, self.bound, self.gradient, self.met_nan = vector.copy(), bound, gradient, False
        return -bound, -gradient

    def _evaluate_barrier(self, vector: Vector) -> tuple[float, Vector]:
        # In place of a non-finite value: a quadratic around the best point that rises by as much as the gradient there
        # promised to fall. The line search rejects the step and interpolates back to about a third of it.
        step = vector - self.vector
        height = abs(float(self.gradient @ step)) + 1e-12 * (1.0 + abs(self.bound))
        return -self.bound + height, 2.0 * height * step / max(float(step @ step), 1e-300)


def _run_phase(
    tracker: _Tracker, phase: Phase, settings: Settings, number: int, report: Callable[[Step], None]
) -> Status:
    base, free = tracker.vector.copy(), phase.free

    def function(values: np.ndarray) -> tuple[float, np.ndarray]:
        vector = base.copy()
        vector[free] = values
        value, gradient = tracker.evaluate_negative(vector)
        return value, gradient[free]

    iterations = count(1)

    def callback(intermediate_result: OptimizeResult) -> None:
        report(Step(number, next(iterations), -float(intermediate_result.fun)))

    result = minimize(
        function,
        base[free],
        jac=True,
        method="L-BFGS-B",
        callback=callback,
        options={
            "maxcor": settings.memory,
            "ftol": settings.ftol,
            "gtol": settings.gtol,
            "maxiter": phase.iterations,
            "maxfun": 20 * phase.iterations + 20,
        },
    )
    if result.status == 0:
        return Status.CONVERGED
    if result.status == 1:
        return Status.ITERATION_LIMIT
    return Status.NOT_FINITE if tracker.met_nan else Status.STALLED


def _is_finite(bound: float, gradient: Vector) -> bool:
    return bool(np.isfinite(bound) and np.isfinite(gradient).all())


def maximise_tree(
    value_and_gradient: Callable[[Tree], tuple[Any, Tree]],
    start: Tree,
    iterations: int,
    report: Callable[[Step], None] = lambda step: None,
) -> tuple[Tree, Optimum]:
    """Maximise a function of a tree of arrays; return the best tree, as NumPy arrays, and the optimum."""
    flat, unravel = ravel_pytree(start)

    def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = value_and_gradient(unravel(vector))  # pyright: ignore[reportArgumentType] (NumPy arrays work too)
        return float(value), np.asarray(ravel_pytree(gradient)[0])

    phase = Phase(np.ones(len(flat), dtype=bool), iterations)
    optimum = maximise(objective, np.asarray(flat), [phase], DEFAULT_SETTINGS, report)
    best: Tree = jax.tree.map(np.asarray, unravel(optimum.vector))  # pyright: ignore[reportArgumentType]
    return best, optimum
