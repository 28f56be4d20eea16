"""Fits of one shape that advance together as one compiled program: seeds, folds, recipes and weights on an accelerator.

Start values are computed one after another: in threads k-means waits for the interpreter longer than it computes.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import jax
import numpy as np

from revarb.config.recipe import RECIPES
from revarb.config.rgp import RGP
from revarb.data.series import Series
from revarb.errors import RevarbError
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.batched_lbfgs import evaluate_batch, maximise_batch, prepare_batch
from revarb.optim.lbfgs import Optimum, Phase, Settings
from revarb.optim.status import Status, Step
from revarb.training.fold_paths import FoldPath, build_at, initialise_fold
from revarb.training.free_run import FreeRuns
from revarb.training.objective import MemberBound
from revarb.training.problem import Plan, Problem, make_plan
from revarb.training.solve import make_step_report, weigh_at
from revarb.training.stretches import Stretch
from revarb.training.workers import TaskReport, call_task
from revarb.variational.bound import Rows
from revarb.variational.parameters import get_form

Path = list[tuple[float, Optimum]]
"""The weights of the free-run term, rising from zero, and the optimum at each."""


def fit_paths_together(
    fits: Sequence[tuple[RGP, int]],
    records: Sequence[Series],
    stretches: Sequence[Stretch],
    seed: int,
    report: TaskReport,
    likely: Sequence[tuple[RGP, int]] = (),
) -> Iterator[tuple[int, FoldPath | RevarbError]]:
    """Fit configurations to the records without a fold each, or to all of them (`ALL`); yield numbers and paths.

    While some are optimised, one thread prepares the next ones, and after them the programs of fits that are `likely`
    to follow; another one builds models. After Ctrl-C the paths that were not finished are missing.
    """
    errors: dict[int, RevarbError] = {}

    def initialise(number: int) -> Problem:
        spec, fold = [*fits, *likely][number]
        return initialise_fold(spec, records, stretches, fold, seed)

    def prepare(numbers: Sequence[int]) -> list[_Batch]:
        with jax.enable_x64(True):  # which is a setting of a thread
            problems = initialise_together(initialise, numbers)
            errors.update(_find_errors(numbers, problems))
            batches = _make_batches(numbers, problems, report)
            for batch in batches:
                batch.prepare()
            return batches

    built, started = [], time.perf_counter()
    with _single_thread() as ahead, _single_thread() as behind:
        prepared = ahead.map(prepare, _group_by_model(fits))
        ahead.submit(prepare, range(len(fits), len(fits) + len(likely)))
        for batch in chain.from_iterable(prepared):
            paths = batch.trace()
            seconds, started = (time.perf_counter() - started) / len(paths), time.perf_counter()
            built += [
                (number, behind.submit(_collect, problem, path, seconds))
                for number, problem, path in zip(batch.numbers, batch.problems, paths, strict=True)
            ]
            if any(_is_interrupted(path) for path in paths):
                break
        yield from ((number, path.result()) for number, path in built)
    yield from ((number, error) for number, error in list(errors.items()) if number < len(fits))


@contextmanager
def _single_thread() -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(max_workers=1)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _group_by_model(fits: Sequence[tuple[RGP, int]]) -> list[list[int]]:
    # The numbers of fits of one model, whatever their recipe and fold: most of them have one shape. The models whose
    # start values and programs are ready soonest come first.
    models: dict[RGP, list[int]] = {}
    for number, (spec, _) in enumerate(fits):
        models.setdefault(replace(spec, recipe=RECIPES["R0"]), []).append(number)
    return [models[spec] for spec in sorted(models, key=lambda spec: (spec.linear, spec.hidden))]


def _find_errors(numbers: Sequence[int], problems: Sequence[Problem | RevarbError]) -> dict[int, RevarbError]:
    pairs = zip(numbers, problems, strict=True)
    return {number: problem for number, problem in pairs if isinstance(problem, RevarbError)}


def _collect(problem: Problem, path: Path | RevarbError, seconds: float) -> FoldPath | RevarbError:
    if isinstance(path, RevarbError):
        return path
    with jax.enable_x64(True):
        return FoldPath(_build_models(problem, path), seconds)


def _build_models(problem: Problem, path: Path) -> tuple[FittedRGP, ...]:
    if _is_interrupted(path):
        return ()
    return tuple(build_at(problem, optimum, weight) for weight, optimum in path)


def _is_interrupted(path: Path | RevarbError) -> bool:
    return isinstance(path, list) and path[-1][1].status is Status.INTERRUPTED


def initialise_together(initialise: Callable[[int], Problem], numbers: Sequence[int]) -> list[Problem | RevarbError]:
    """Call `initialise` for every seed or fold; an error takes the place of its problem."""
    return [call_task(lambda _, at=number: initialise(at), (), lambda steps, text: None) for number in numbers]


def trace_together(problems: Sequence[Problem | RevarbError], report: TaskReport) -> list[Path | RevarbError]:
    """Optimise problems, at weight zero and at all of the recipe's weights; errors stay what they are.

    Those of one shape advance together: gaps can give the folds of a record different shapes. A path ends early where
    its runs diverge, and after Ctrl-C. The bounds are without the free-run term.
    """
    numbers = range(len(problems))
    found: dict[int, Path | RevarbError] = {**_find_errors(numbers, problems)}
    for batch in _make_batches(numbers, problems, report):
        found.update(zip(batch.numbers, batch.trace(), strict=True))
    return [found[number] for number in numbers]


class _Batch(NamedTuple):
    """Problems of one shape, with their numbers, their objective, and the data of all members."""

    numbers: Sequence[int]
    problems: Sequence[Problem]
    plans: Sequence[Plan]
    objective: MemberBound
    own: tuple[Rows, FreeRuns | None]  # with a leading axis of members
    report: TaskReport

    @property
    def settings(self) -> Settings:
        return self.plans[0].settings

    @property
    def starts(self) -> np.ndarray:
        return np.stack([plan.start for plan in self.plans])

    def prepare(self) -> None:
        """Load the program of the batch, or compile it."""
        prepare_batch(self.objective, self.own, np.float64(0.0), self.starts, self.settings)

    def trace(self) -> list[Path | RevarbError]:
        """Optimise all members, at weight zero and at the weights of their recipe."""
        recipe, starts, phases = self.problems[0].spec.recipe, self.starts, [plan.phases for plan in self.plans]
        found = self._maximise(0.0, starts, phases, 0)
        paths: list[Path | RevarbError] = [each if isinstance(each, RevarbError) else [(0.0, each)] for each in found]
        last = [[own[-1]._replace(iterations=recipe.free_run_iterations)] for own in phases]
        for number, weight in enumerate(recipe.free_run_weights):
            going = [path for path in paths if isinstance(path, list) and _goes_on(path[-1][1])]
            if not going:
                break
            starts = np.stack([
                start if isinstance(path, RevarbError) else path[-1][1].vector
                for path, start in zip(paths, starts, strict=True)
            ])  # fmt: skip
            runs = [weigh_at(problem, start) for problem, start in zip(self.problems, starts, strict=True)]
            weighed = self._replace(own=(self.own[0], _stack(runs)))
            later = weighed._maximise(weight, starts, last, len(recipe.stages) + number)
            for path, each in zip(paths, later, strict=True):
                if isinstance(path, list) and _goes_on(path[-1][1]):
                    path.append((weight, _continue(path[-1][1], each)))
        return paths

    def _maximise(
        self, weight: float, starts: np.ndarray, phases: Sequence[Sequence[Phase]], stages_before: int
    ) -> Sequence[Optimum | RevarbError]:
        def report(member: int, step: Step) -> None:
            [moved] = _move_stages([step], stages_before)
            make_step_report(self.problems[member].spec, partial(self.report, self.numbers[member]))(moved)

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


def _make_batches(
    numbers: Sequence[int], problems: Sequence[Problem | RevarbError], report: TaskReport
) -> list[_Batch]:
    shapes: dict[Any, list[tuple[int, Problem]]] = {}
    for number, problem in zip(numbers, problems, strict=True):
        if isinstance(problem, Problem):
            shapes.setdefault(_describe_shape(problem), []).append((number, problem))
    return [_make_batch(members, report) for members in shapes.values()]


def _describe_shape(problem: Problem) -> tuple[Any, ...]:
    recipe = problem.spec.recipe
    path = len(recipe.stages), recipe.free_run_weights, recipe.free_run_iterations
    return get_form(problem.start), problem.layout, make_plan(problem).settings, path


def _make_batch(members: Sequence[tuple[int, Problem]], report: TaskReport) -> _Batch:
    numbers, problems = zip(*members, strict=True)
    objective = MemberBound(get_form(problems[0].start), problems[0].layout)
    own = _stack([(each.rows, each.runs) for each in problems])
    return _Batch(numbers, problems, [make_plan(each) for each in problems], objective, own, report)


def _stack(trees: Sequence[Any]) -> Any:
    # On the device, once for all calls.
    return jax.device_put(jax.tree.map(lambda *leaves: np.stack(leaves), *trees))


def _move_stages(history: Sequence[Step], before: int) -> tuple[Step, ...]:
    return tuple(step._replace(stage=step.stage + before) for step in history)


def _goes_on(optimum: Optimum) -> bool:
    return optimum.status not in (Status.INTERRUPTED, Status.NOT_FINITE)


def _continue(before: Optimum, later: Optimum | RevarbError) -> Optimum:
    if isinstance(later, RevarbError):  # the runs diverge at the start
        return before._replace(status=Status.NOT_FINITE)
    return later._replace(history=(*before.history, *later.history))
