"""Fits of one shape that advance together as one compiled program: seeds, folds and weights on an accelerator."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from revarb.config.rgp import RGP
from revarb.data.series import Series
from revarb.errors import RevarbError
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.batched_lbfgs import evaluate_batch, maximise_batch
from revarb.optim.lbfgs import Optimum, Phase, Settings
from revarb.optim.status import Status, Step
from revarb.training.fold_paths import FoldPath, build_at, initialise_fold
from revarb.training.free_run import FreeRuns
from revarb.training.objective import MemberBound
from revarb.training.problem import Problem, make_plan
from revarb.training.solve import make_step_report, weigh_at
from revarb.training.stretches import Stretch
from revarb.training.workers import TaskReport, call_task
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
    problems = initialise_together(partial(initialise_fold, spec, records, stretches, seed=seed), folds)
    paths = trace_together(problems, report)
    seconds = (time.perf_counter() - started) / len(folds)
    return [_collect(*member, seconds) for member in zip(problems, paths, strict=True)]


def _collect(problem: Problem | RevarbError, path: Path | RevarbError, seconds: float) -> FoldPath | RevarbError:
    if isinstance(path, RevarbError):  # that of its problem, if there was one
        return path
    assert not isinstance(problem, RevarbError)
    return FoldPath(_build_models(problem, path), seconds)


def initialise_together(initialise: Callable[[int], Problem], numbers: Sequence[int]) -> list[Problem | RevarbError]:
    """Call `initialise` for every seed or fold, in threads: k-means takes as long as a fit on an accelerator."""

    def initialise_one(number: int) -> Problem | RevarbError:
        with jax.enable_x64(True):  # which is a setting of a thread
            return call_task(lambda _: initialise(number), (), lambda steps, text: None)

    with ThreadPoolExecutor() as pool:
        return list(pool.map(initialise_one, numbers))


def _build_models(problem: Problem, path: Path) -> tuple[FittedRGP, ...]:
    if path[-1][1].status is Status.INTERRUPTED:
        return ()
    return tuple(build_at(problem, optimum, weight) for weight, optimum in path)


def trace_together(problems: Sequence[Problem | RevarbError], report: TaskReport) -> list[Path | RevarbError]:
    """Optimise problems of one recipe, at weight zero and at all of the recipe's weights; errors stay what they are.

    Those of one shape advance together: gaps can give the folds of a record different shapes. A path ends early where
    its runs diverge, and after Ctrl-C. The bounds are without the free-run term.
    """
    found: dict[int, Path | RevarbError] = {}
    shapes: dict[Any, list[int]] = {}
    for number, problem in enumerate(problems):
        if isinstance(problem, RevarbError):
            found[number] = problem
        else:
            shapes.setdefault((get_form(problem.start), problem.layout), []).append(number)
    for numbers in shapes.values():
        members = [problem for number in numbers if isinstance(problem := problems[number], Problem)]
        paths = _trace_batch(members, lambda member, steps, text, at=numbers: report(at[member], steps, text))
        found.update(zip(numbers, paths, strict=True))
    return [found[number] for number in range(len(problems))]


def _trace_batch(problems: Sequence[Problem], report: TaskReport) -> list[Path | RevarbError]:
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
        runs = [weigh_at(problem, start) for problem, start in zip(problems, starts, strict=True)]
        later = batch.with_runs(runs).maximise(weight, starts, [last], len(phases) + number)
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

    def with_runs(self, runs: Sequence[FreeRuns]) -> "_Batch":
        return self._replace(own=(self.own[0], jax.tree.map(lambda *leaves: np.stack(leaves), *runs)))

    def maximise(
        self, weight: float, starts: np.ndarray, phases: Sequence[Phase], stages_before: int
    ) -> Sequence[Optimum | RevarbError]:
        def report(member: int, step: Step) -> None:
            self.report(member, *_move_stages([step], stages_before))

        found = [
            each if isinstance(each, RevarbError) else each._replace(history=_move_stages(each.history, stages_before))
            for each in maximise_batch(
                self.objective, self.own, np.float64(weight), starts, phases, self.settings, report
            )
        ]
        if weight == 0.0:
            return found
        vectors = np.stack([
            start if isinstance(each, RevarbError) else each.vector for each, start in zip(found, starts, strict=True)
        ])  # fmt: skip
        bounds = evaluate_batch(self.objective, self.own, np.float64(0.0), vectors, self.settings)
        return [
            each if isinstance(each, RevarbError) else each._replace(bound=float(bound))
            for each, bound in zip(found, bounds, strict=True)
        ]


def _move_stages(history: Sequence[Step], before: int) -> tuple[Step, ...]:
    return tuple(step._replace(stage=step.stage + before) for step in history)


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
