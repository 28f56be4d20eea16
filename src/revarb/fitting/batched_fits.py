"""Fits of one shape that advance as one compiled program: seeds, folds, recipes and weights on an accelerator.

Start values are computed one after another: in threads k-means waits for the interpreter longer than it computes.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import jax
import numpy as np

from revarb.data.series import Series
from revarb.errors import RevarbError
from revarb.fitting.batched_lbfgs import evaluate_batch, maximise_batch
from revarb.fitting.calibrate import calibrate
from revarb.fitting.free_run import FreeRuns
from revarb.fitting.held_out import HeldOutBlock
from revarb.fitting.lbfgs import Optimum, Phase, Vector
from revarb.fitting.networks import train_networks
from revarb.fitting.objective import MemberBound, weigh_at
from revarb.fitting.problem import Plan, Problem, Report, Task, initialise, make_plan
from revarb.fitting.weight_path import (
    Found,
    WeightPath,
    build_at,
    build_model,
    initialise_fold,
    make_step_report,
    raise_weights,
)
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.recipe import RECIPES, Status, Step
from revarb.models.rgp import RGP
from revarb.runtime.journal import Journal
from revarb.runtime.workers import TaskReport, call_task
from revarb.variational.bound import Rows
from revarb.variational.parameters import get_form

Path = list[tuple[float, Optimum]]
"""The weights of the free-run term, rising from zero, and the optimum at each."""


def fit_batched(task: Task, seeds: Sequence[int], report: TaskReport) -> list[FittedRGP | RevarbError]:
    """Fit all members at once, as one program, without a journal."""

    def start(seed: int, report: Report) -> Problem:
        return train_networks(initialise(task, seed), report, Journal())

    def finish(number: int, optimum: Optimum) -> FittedRGP:
        return calibrate(build_model(problems[number], optimum), task, partial(report, number), Journal())

    problems = [call_task(start, (seed,), partial(report, number)) for number, seed in enumerate(seeds)]
    paths = trace_batched(problems, report)
    return [path if isinstance(path, RevarbError) else finish(number, path[-1][1]) for number, path in enumerate(paths)]


def fit_paths_batched(
    fits: Sequence[tuple[RGP, int]],
    records: Sequence[Series],
    blocks: Sequence[HeldOutBlock],
    seed: int,
    report: TaskReport,
) -> Iterator[tuple[int, WeightPath | RevarbError]]:
    """Fit configurations to the records without a fold each, or to all of them (`ALL`); yield numbers and paths.

    While some are optimised, one thread prepares the next ones, and another one builds models. After Ctrl-C the paths
    that were not finished are missing.
    """
    errors: dict[int, RevarbError] = {}

    def initialise_one(spec: RGP, fold: int, _: Report) -> Problem:
        return initialise_fold(spec, records, blocks, fold, seed)

    def prepare(numbers: Sequence[int]) -> list[_Batch]:
        with jax.enable_x64(True):  # which is a setting of a thread
            problems = {number: call_task(initialise_one, fits[number], lambda steps, text: None) for number in numbers}
            errors.update({number: each for number, each in problems.items() if isinstance(each, RevarbError)})
            batches = _make_batches(problems, report)
            for batch in batches:
                batch.prepare()
            return batches

    built, started = [], time.perf_counter()
    with _single_thread() as ahead, _single_thread() as behind:
        prepared = ahead.map(prepare, _group_by_model(fits))
        for batch in chain.from_iterable(prepared):
            paths = batch.trace()
            seconds, started = (time.perf_counter() - started) / len(paths), time.perf_counter()
            built += [
                (number, behind.submit(_build_models, problem, path, seconds))
                for (number, problem), path in zip(batch.problems.items(), paths, strict=True)
            ]
            if any(_is_interrupted(path) for path in paths):
                break
        yield from ((number, path.result()) for number, path in built)
    yield from errors.items()


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


def _build_models(problem: Problem, path: Path | RevarbError, seconds: float) -> WeightPath | RevarbError:
    if isinstance(path, RevarbError):
        return path
    with jax.enable_x64(True):
        models = () if _is_interrupted(path) else (build_at(problem, optimum, weight) for weight, optimum in path)
        return WeightPath(tuple(models), seconds)


def _is_interrupted(path: Path | RevarbError) -> bool:
    return isinstance(path, list) and path[-1][1].status is Status.INTERRUPTED


def trace_batched(problems: Sequence[Problem | RevarbError], report: TaskReport) -> list[Path | RevarbError]:
    """Optimise problems, at weight zero and at all of the recipe's weights; errors stay what they are.

    Those of one shape advance together: gaps can give the folds of a record different shapes. A path ends early where
    its runs diverge, and after Ctrl-C. The bounds are without the free-run term.
    """
    found: dict[int, Any] = dict(enumerate(problems))
    for batch in _make_batches(found, report):
        found.update(zip(batch.problems, batch.trace(), strict=True))
    return list(found.values())


class _Batch(NamedTuple):
    """Problems of one shape by their numbers, their objective, and the data of all members."""

    problems: dict[int, Problem]
    plans: Sequence[Plan]
    objective: MemberBound
    own: tuple[Rows, FreeRuns | None]  # with a leading axis of members
    report: TaskReport

    def prepare(self) -> None:
        """Load the program of the batch, or compile it."""
        starts = np.stack([plan.start for plan in self.plans])
        evaluate_batch(self.objective, self.own, np.float64(0.0), starts, self.plans[0].settings, ticks=0)

    def trace(self) -> list[Path | RevarbError]:
        """Optimise all members, at weight zero and at the weights of their recipe."""
        paths: list[Any] = [[] for _ in self.problems]
        recipe = next(iter(self.problems.values())).spec.recipe
        for weight, found in raise_weights(recipe, self.plans, self._optimise):
            for member, each in enumerate(found):
                if isinstance(each, RevarbError):
                    paths[member] = each
                elif each is not None:
                    paths[member].append((weight, each))
        return paths

    def _optimise(
        self, weight: float, starts: Sequence[Vector], phases: Sequence[Sequence[Phase]], first_stage: int
    ) -> list[Found]:
        own, settings = self.own, self.plans[0].settings
        if weight > 0.0:
            runs = [weigh_at(problem, start) for problem, start in zip(self.problems.values(), starts, strict=True)]
            own = (own[0], _stack(runs))
        found: list[Found] = [*maximise_batch(
            self.objective, own, np.float64(weight), np.stack(starts), phases, settings, self._report, first_stage
        )]  # fmt: skip
        if weight == 0.0:
            return found
        vectors = [
            each.vector if isinstance(each, Optimum) else start for each, start in zip(found, starts, strict=True)
        ]
        bounds = evaluate_batch(self.objective, own, np.float64(0.0), np.stack(vectors), settings).tolist()
        return [
            each._replace(bound=bound) if isinstance(each, Optimum) else each
            for each, bound in zip(found, bounds, strict=True)
        ]

    def _report(self, member: int, step: Step) -> None:
        number, problem = list(self.problems.items())[member]
        make_step_report(problem.spec, partial(self.report, number))(step)


def _make_batches(problems: dict[int, Problem | RevarbError], report: TaskReport) -> list[_Batch]:
    shapes: dict[Any, dict[int, Problem]] = {}
    for number, problem in problems.items():
        if isinstance(problem, Problem):
            recipe = problem.spec.recipe
            path = len(recipe.stages), recipe.free_run_weights, recipe.free_run_iterations
            shape = MemberBound(get_form(problem.start), problem.layout), make_plan(problem).settings, path
            shapes.setdefault(shape, {})[number] = problem
    batches = []
    for (objective, *_), members in shapes.items():
        own = _stack([(each.rows, each.runs) for each in members.values()])
        batches.append(_Batch(members, [make_plan(each) for each in members.values()], objective, own, report))
    return batches


def _stack(trees: Sequence[Any]) -> Any:
    # On the device, once for all calls.
    return jax.device_put(jax.tree.map(lambda *leaves: np.stack(leaves), *trees))
