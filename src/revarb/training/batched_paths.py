"""Fits of one shape that advance together as one compiled program: seeds, folds and weights on an accelerator."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import jax
import numpy as np

from revarb.config.rgp import RGP
from revarb.data.series import Series
from revarb.errors import RevarbError
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.batched_lbfgs import evaluate_batch, maximise_batch
from revarb.optim.lbfgs import Optimum, Phase, Settings
from revarb.optim.status import Status, Step
from revarb.runtime.numerics import with_numerics
from revarb.training.fold_paths import FoldPath, build_at, initialise_fold
from revarb.training.free_run import FreeRuns
from revarb.training.objective import MemberBound
from revarb.training.problem import Problem, make_plan
from revarb.training.solve import make_step_report
from revarb.training.stretches import Stretch
from revarb.training.workers import TaskReport
from revarb.variational.bound import Rows
from revarb.variational.parameters import get_form

Path = list[tuple[float, Optimum]]
"""The weights of the free-run term, rising from zero, and the optimum at each."""


def fit_paths_together(
    spec: RGP,
    records: Sequence[Series],
    stretches: Sequence[Stretch],
    folds: Sequence[int],
    seed: int,
    report: TaskReport,
) -> list[FoldPath | RevarbError]:
    """Fit the records without each of the folds; `ALL` is one of them where nothing is left out."""
    started = time.perf_counter()
    initialise = partial(initialise_fold, spec, records, stretches, seed=seed)
    with ThreadPoolExecutor() as pool:  # k-means takes as long as the fit on an accelerator
        problems = list(pool.map(with_numerics(lambda fold: initialise(fold=fold)), folds))
    paths = trace_together(problems, report)
    seconds = (time.perf_counter() - started) / len(folds)
    return [
        path if isinstance(path, RevarbError) else FoldPath(_build_models(problem, path), seconds)
        for problem, path in zip(problems, paths, strict=True)
    ]


def _build_models(problem: Problem, path: Path) -> tuple[FittedRGP, ...]:
    if path[-1][1].status is Status.INTERRUPTED:
        return ()
    return tuple(build_at(problem, optimum, weight) for weight, optimum in path)


def trace_together(problems: Sequence[Problem], report: TaskReport) -> list[Path | RevarbError]:
    """Optimise problems of one shape and recipe, at weight zero and at all of the recipe's weights.

    A path ends early where its runs diverge, and after Ctrl-C. The bounds are without the free-run term.
    """
    recipe, batch = problems[0].spec.recipe, _Batch.from_problems(problems, report)
    plans = [make_plan(problem) for problem in problems]
    phases, starts = plans[0].phases, np.stack([plan.start for plan in plans])
    found = batch.maximise(0.0, starts, phases, 0)
    paths: list[Path | RevarbError] = [each if isinstance(each, RevarbError) else [(0.0, each)] for each in found]
    last = phases[-1]._replace(iterations=recipe.free_run_iterations)
    for number, weight in enumerate(recipe.free_run_weights):
        going = [path for path in paths if isinstance(path, list) and _goes_on(path[-1][1])]
        if not going:
            break
        starts = np.stack([
            start if isinstance(path, RevarbError) else path[-1][1].vector
            for path, start in zip(paths, starts, strict=True)
        ])  # fmt: skip
        later = batch.maximise(weight, starts, [last], len(phases) + number)
        for path, each in zip(paths, later, strict=True):
            if isinstance(path, list) and _goes_on(path[-1][1]):
                path.append((weight, _continue(path[-1][1], each)))
    return paths


class _Batch(NamedTuple):
    """The objective and the data of all members."""

    objective: MemberBound
    own: tuple[Rows, FreeRuns | None]  # with a leading axis of members
    settings: Settings
    report: Callable[[int, Step], None]

    @classmethod
    def from_problems(cls, problems: Sequence[Problem], report: TaskReport) -> "_Batch":
        first = problems[0]
        own = jax.tree.map(lambda *leaves: np.stack(leaves), *[(each.rows, each.runs) for each in problems])
        objective = MemberBound(get_form(first.start), first.layout)
        return cls(objective, own, make_plan(first).settings, _make_report(first, report))

    def maximise(
        self, weight: float, starts: np.ndarray, phases: Sequence[Phase], stages_before: int
    ) -> list[Optimum | RevarbError]:
        def report(member: int, step: Step) -> None:
            self.report(member, step._replace(stage=step.stage + stages_before))

        found = maximise_batch(self.objective, self.own, np.float64(weight), starts, phases, self.settings, report)
        if weight == 0.0:
            return list(found)
        vectors = np.stack([
            start if isinstance(each, RevarbError) else each.vector for each, start in zip(found, starts, strict=True)
        ])  # fmt: skip
        bounds = evaluate_batch(self.objective, self.own, np.float64(0.0), vectors, self.settings)
        return [
            each if isinstance(each, RevarbError) else each._replace(bound=float(bound))
            for each, bound in zip(found, bounds, strict=True)
        ]


def _goes_on(optimum: Optimum) -> bool:
    return optimum.status not in (Status.INTERRUPTED, Status.NOT_FINITE)


def _continue(before: Optimum, later: Optimum | RevarbError) -> Optimum:
    if isinstance(later, RevarbError):  # the runs diverge at the start
        return before._replace(status=Status.NOT_FINITE)
    return later._replace(history=(*before.history, *later.history))


def _make_report(problem: Problem, report: TaskReport) -> Callable[[int, Step], None]:
    def report_step(member: int, step: Step) -> None:
        make_step_report(problem.spec, lambda steps, text: report(member, steps, text))(step)

    return report_step
