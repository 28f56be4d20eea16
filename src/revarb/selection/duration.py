"""How long a choice takes on this machine: from one measured evaluation of the bound of every path.

The evaluation also compiles the program that all fits of the path share, so that worker processes find it in the
compilation cache.
"""

import timeit
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from revarb.errors import RevarbError
from revarb.fitting.held_out import FOLDS
from revarb.fitting.objective import make_objective, weigh_at
from revarb.fitting.problem import make_plan
from revarb.fitting.weight_path import initialise_fold
from revarb.models.rgp import RGP
from revarb.runtime.numerics import map_in_threads
from revarb.selection.candidates import CandidatePath
from revarb.selection.validation import Validation

REPEATS = 3  # evaluations, of which the fastest counts
EVALUATIONS = 1.15  # per iteration of L-BFGS-B, with those of its line searches
SHARED = 1.3  # by which an evaluation is slower where all cores have one
OTHERS = 3.0  # seconds of a fit beside its evaluations: start values, held-out runs, calibration


class Duration(NamedTuple):
    """Seconds of the fits of a path: of those without a fold each, and of the one to all records."""

    folds: float
    final: float


def measure_durations(validation: Validation, paths: Sequence[CandidatePath]) -> dict[CandidatePath, Duration]:
    """Measure an evaluation of every path and multiply; a configuration that cannot be measured takes no time."""
    scheduler = validation.scheduler
    evaluations = map_in_threads(lambda path: _compile_evaluation(path, validation), paths)
    rows = [sum(len(record) for record in records) for records in (scheduler.parts, scheduler.records)]
    waves, slower = -(-FOLDS // scheduler.workers), SHARED if scheduler.workers > 1 else 1.0
    durations = {}
    for path, evaluate in zip(paths, evaluations, strict=True):
        fit = count_evaluations(path) * min(timeit.repeat(evaluate, number=1, repeat=REPEATS))
        more = rows[1] / rows[0] * _compare_work(path)
        durations[path] = Duration(waves * (slower * fit + OTHERS), more * fit + OTHERS)
    return durations


def count_evaluations(path: CandidatePath) -> float:
    """About how many evaluations of the bound one fit without a fold takes."""
    return EVALUATIONS * sum(path.trial_spec.recipe.iterations) if isinstance(path.spec, RGP) else 0.0


def _compare_work(path: CandidatePath) -> float:
    # Of the fit to all records, over that of one without a fold with as many rows.
    if not isinstance(path.spec, RGP):
        return 1.0
    last, trial = path.spec, path.trial_spec
    return sum(last.recipe.iterations) / sum(trial.recipe.iterations) * (last.inducing / trial.inducing) ** 2


def _compile_evaluation(path: CandidatePath, validation: Validation) -> Callable[[], object]:
    held_out = validation.held_out
    if not path.has_weights:
        return lambda: None
    try:
        problem = initialise_fold(path.trial_spec, held_out.records, held_out.blocks, 0, validation.scheduler.seed)
        start = make_plan(problem).start
        evaluate = partial(make_objective(problem, weigh_at(problem, start), path.weights[-1]), start)
        evaluate()
    except RevarbError:  # its fits will say so
        return lambda: None
    return evaluate


def estimate_total(durations: Mapping[CandidatePath, Duration], members: int, workers: int) -> float:
    """About how long all fits take; no more paths are fitted to all records than there are members."""
    return sum(each.folds for each in durations.values()) + estimate_last_fits([*durations.values()], members, workers)


def estimate_last_fits(durations: Sequence[Duration], members: int, workers: int) -> float:
    """About how long the fits of the members to all records take, side by side: those of the slowest paths."""
    finals = sorted((each.final for each in durations), reverse=True)[:members]
    return max([sum(finals) / workers, *finals[:1]])
