"""Fits of one structure without one fold, along rising weights of the free-run term."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from revarb.config.rgp import RGP
from revarb.data.series import Series
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.journal import Journal
from revarb.optim.lbfgs import Optimum, maximise
from revarb.optim.status import Status
from revarb.training.objective import make_penalised_objective
from revarb.training.padding import pad_problem
from revarb.training.problem import Problem, Report, Task, initialise, make_plan, make_preprocessor
from revarb.training.solve import build_model, make_step_report, raise_weights
from revarb.training.stretches import Stretch, mask_fold

ALL = -1  # in place of a fold: nothing is left out


class FoldPath(NamedTuple):
    """One model per weight of the free-run term, in rising order, and the time they took.

    There are fewer models than weights where the runs diverged, and none after Ctrl-C.
    """

    models: tuple[FittedRGP, ...]
    seconds: float


def fit_path(
    spec: RGP, records: Sequence[Series], stretches: Sequence[Stretch], fold: int, seed: int, report: Report
) -> FoldPath:
    """Fit the records without one fold, at weight 0 and at all of the recipe's weights."""
    started = time.perf_counter()
    try:
        models = tuple(trace_path(spec, records, stretches, fold, seed, report))
    except KeyboardInterrupt:
        models = ()
    return FoldPath(models, time.perf_counter() - started)


def trace_path(
    spec: RGP, records: Sequence[Series], stretches: Sequence[Stretch], fold: int, seed: int, report: Report
) -> Iterator[FittedRGP]:
    """Yield the models along the path of rising weights; Ctrl-C raises KeyboardInterrupt."""
    problem = initialise_fold(spec, records, stretches, fold, seed)
    assert problem.runs is not None  # candidates have a free-run term, whatever weight is taken in the end
    # The term has weight zero at first: all stages, weights and folds share one compiled program.
    objective = make_penalised_objective(problem, problem.runs, 0.0)
    optimum = maximise(objective, *make_plan(problem), make_step_report(spec, report))
    yield build_at(problem, optimum, 0.0)
    for weight, later in raise_weights(problem, optimum, "path", report, Journal()):
        yield build_at(problem, later, weight)


def initialise_fold(
    spec: RGP, records: Sequence[Series], stretches: Sequence[Stretch], fold: int, seed: int
) -> Problem:
    """The fit of the records without one fold, in the same shape for all folds, for `ALL` and for similar lengths."""
    masked = list(records) if fold == ALL else mask_fold(records, stretches, fold)
    prep = make_preprocessor(spec, masked)
    return pad_problem(_mark_measured(initialise(Task(spec, tuple(masked), prep, tuple(stretches)), seed)))


def _mark_measured(problem: Problem) -> Problem:
    # Without a gap: a mask all the same, so that the fit to all rows shares the program of the folds.
    if problem.rows.measured is not None:
        return problem
    measured = np.ones((len(problem.rows.y), 1), dtype=bool)
    groups = (tuple(range(problem.rows.y.shape[1])),)
    return problem._replace(
        rows=problem.rows._replace(measured=measured), layout=problem.layout._replace(groups=groups)
    )


def build_at(problem: Problem, optimum: Optimum, weight: float) -> FittedRGP:
    """Build the model at the optimum of a weight of the free-run term; Ctrl-C raises KeyboardInterrupt."""
    if optimum.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return replace(build_model(problem, optimum), spec=set_weight(problem.spec, weight))


def set_weight(spec: RGP, weight: float) -> RGP:
    """The configuration with another weight of the free-run term."""
    return replace(spec, recipe=replace(spec.recipe, free_run_weight=weight))
