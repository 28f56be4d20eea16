"""Fits of one configuration without one fold, along rising weights of the free-run term."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from revarb.data.series import Series
from revarb.fitting.held_out import HeldOutBlock, mask_fold
from revarb.fitting.lbfgs import Optimum
from revarb.fitting.optimise import build_model, optimise_alone
from revarb.fitting.padding import pad_problem
from revarb.fitting.problem import Problem, Report, Task, initialise, make_preprocessor
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.rgp import RGP
from revarb.models.status import Status
from revarb.runtime.journal import Journal
from revarb.runtime.numerics import with_numerics

ALL = -1  # in place of a fold: nothing is left out


class WeightPath(NamedTuple):
    """One model per weight of the free-run term, in rising order, and the time they took.

    There are fewer models than weights where the runs diverged, and none after Ctrl-C.
    """

    models: tuple[FittedRGP, ...]
    seconds: float


@with_numerics
def fit_whole_path(
    spec: RGP, records: Sequence[Series], blocks: Sequence[HeldOutBlock], fold: int, seed: int, report: Report
) -> WeightPath:
    """Fit the records without one fold, at weight 0 and at all of the recipe's weights: a task for a process."""
    started = time.perf_counter()
    try:
        models = tuple(fit_weight_path(spec, records, blocks, fold, seed, report))
    except KeyboardInterrupt:
        models = ()
    return WeightPath(models, time.perf_counter() - started)


def fit_weight_path(
    spec: RGP, records: Sequence[Series], blocks: Sequence[HeldOutBlock], fold: int, seed: int, report: Report
) -> Iterator[FittedRGP]:
    """Yield the models along the path of rising weights; Ctrl-C raises KeyboardInterrupt."""
    problem = initialise_fold(spec, records, blocks, fold, seed)
    assert problem.runs is not None  # candidates have a free-run term, whatever weight is taken in the end
    for weight, optimum in optimise_alone(problem, report, Journal(), shared=True):
        yield build_at(problem, optimum, weight)


def initialise_fold(
    spec: RGP, records: Sequence[Series], blocks: Sequence[HeldOutBlock], fold: int, seed: int
) -> Problem:
    """The fit of the records without one fold, in the same shape for all folds, for `ALL` and for similar lengths."""
    masked = list(records) if fold == ALL else mask_fold(records, blocks, fold)
    prep = make_preprocessor(spec, masked)
    return pad_problem(_mark_measured(initialise(Task(spec, tuple(masked), prep, tuple(blocks)), seed)))


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
