"""The order in which candidates are tried, as far as there is time: linear models first, then the paths.

How long a path takes is estimated from one measured evaluation of its bound. The evaluation also compiles the program
that all fits of the path share, so that worker processes find it in the compilation cache.
"""

import time
import timeit
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from revarb.errors import InputError, RevarbError, warn_user
from revarb.fitting.held_out import FOLDS
from revarb.fitting.objective import make_objective, weigh_at
from revarb.fitting.problem import make_plan
from revarb.fitting.weight_path import initialise_fold
from revarb.models.rgp import RGP
from revarb.runtime.numerics import map_in_threads
from revarb.selection.candidates import CandidatePath, DefaultCandidates, GivenCandidates
from revarb.selection.linear import find_delay, try_linear
from revarb.selection.ranking import Ranking, rank
from revarb.selection.schedule import FitJob, Scheduler
from revarb.selection.validation import Validation

AnyCandidates = DefaultCandidates | GivenCandidates

REPEATS = 3  # evaluations, of which the fastest counts
EVALUATIONS = 1.15  # per iteration of L-BFGS-B, with those of its line searches
SHARED = 1.3  # by which an evaluation is slower where all cores have one
OTHERS = 3.0  # seconds of a fit beside its evaluations: start values, held-out runs, calibration


@dataclass(frozen=True)
class Budget:
    """The number of members, and the time that is left to find them."""

    members: int
    deadline: float | None = None  # of `time.monotonic`

    @property
    def is_spent(self) -> bool:
        """Whether there is no time left."""
        return self.deadline is not None and time.monotonic() > self.deadline


def try_candidates(validation: Validation, candidates: AnyCandidates, budget: Budget) -> Ranking:
    """Try linear models, then all folds of every path; none is dropped before it was scored on all blocks.

    With a deadline, no path is started that would not finish, its fit to all records included.
    """
    held_out, scheduler = validation.held_out, validation.scheduler
    default = isinstance(candidates, DefaultCandidates)
    linear = try_linear(candidates.list_linear_orders(held_out), held_out, quiet=default)
    paths = candidates.list_paths(held_out.records, find_delay(linear))
    left_out = _fit_folds(validation, paths, budget)
    if left_out == paths and paths and not linear:
        raise InputError("time_limit is too short for any of the candidates; use a longer one")
    results = [*linear, *(result for path in paths for result in validation.score(path))]
    if not default:
        for path, reason in validation.failures.items():
            warn_user(f"{path.name} could not be fitted and is left out: {reason}")
    ranking = rank(results, held_out, validation.failures, budget.members, bool(scheduler.progress.pressed))
    if not left_out:
        return ranking
    names = "; ".join(path.label for path in left_out)
    return replace(ranking, remarks=(*ranking.remarks, f"The time limit left untried: {names}."))


def _fit_folds(validation: Validation, paths: Sequence[CandidatePath], budget: Budget) -> list[CandidatePath]:
    # Those that there was no time for.
    scheduler = validation.scheduler
    if not paths or scheduler.progress.pressed:
        return []
    if budget.is_spent:
        return list(paths)
    folds = scheduler.batch if scheduler.batched else range(FOLDS)
    if scheduler.batched:  # how long a batch takes is not known: it begins if there is any time left
        durations = dict.fromkeys(paths, Duration(0.0, 0.0))
    else:
        durations = measure_durations(validation, paths)
        if scheduler.progress.pressed:
            return []
        last_fits = estimate_last_fits([*durations.values()], budget.members, scheduler.workers)
        total = sum(each.folds for each in durations.values()) + last_fits
        scheduler.progress.say(f"about {total:.0f} s for {len(paths)} structures with {FOLDS} folds each")
    if budget.deadline is None:
        validation.fit([FitJob(path, fold) for path in paths for fold in folds])
        return []
    left_out, started = [], []
    for path in paths:
        last_fits = estimate_last_fits([*started, durations[path]], budget.members, scheduler.workers)
        if time.monotonic() + durations[path].folds + last_fits > budget.deadline:
            left_out.append(path)
        else:
            started.append(durations[path])
            validation.fit([FitJob(path, fold) for fold in folds])
    return left_out


class Duration(NamedTuple):
    """Seconds of the fits of a path: of those without a fold each, and of its last ones where it has members.

    These are the fit to all records, and the one without their last third unless blocks were set aside.
    """

    folds: float
    final: float


def measure_durations(validation: Validation, paths: Sequence[CandidatePath]) -> dict[CandidatePath, Duration]:
    """Measure an evaluation of every path and multiply; a configuration that cannot be measured takes no time."""
    scheduler = validation.scheduler
    evaluations = map_in_threads(lambda path: _compile_evaluation(path, validation), paths, scheduler.workers)
    last = 0.0 if validation.aside is not None else 1.0  # fits without the last third
    waves, slower = -(-FOLDS // scheduler.workers), SHARED if scheduler.workers > 1 else 1.0
    durations = {}
    for path, evaluate in zip(paths, evaluations, strict=True):
        fit = count_evaluations(path) * min(timeit.repeat(evaluate, number=1, repeat=REPEATS))
        more = last + _compare_work(path, scheduler)
        durations[path] = Duration(waves * (slower * fit + OTHERS), more * fit + 2.0 * OTHERS)
    return durations


def count_evaluations(path: CandidatePath) -> float:
    """About how many evaluations of the bound one fit without a fold takes."""
    return EVALUATIONS * sum(path.trial_spec.recipe.iterations) if isinstance(path.spec, RGP) else 0.0


def _compare_work(path: CandidatePath, scheduler: Scheduler) -> float:
    # Of the fit to all records, over that of one without a fold.
    parts, rows = (sum(len(record) for record in records) for records in (scheduler.parts, scheduler.records))
    if not isinstance(path.spec, RGP):
        return rows / parts
    last, trial = path.spec, path.trial_spec
    seen = rows if last.recipe.max_rows is None else min(rows, last.recipe.max_rows)
    power = 1 if last.recipe.knows_states else 2  # kernel matrices instead of psi statistics
    iterations = sum(last.recipe.iterations) / sum(trial.recipe.iterations)
    return seen / parts * iterations * (last.inducing / trial.inducing) ** power


def _compile_evaluation(path: CandidatePath, validation: Validation) -> Callable[[], object]:
    held_out = validation.held_out
    if not path.has_weights or validation.scheduler.progress.pressed:  # after Ctrl-C nothing more is compiled
        return lambda: None
    try:
        problem = initialise_fold(path.trial_spec, held_out.records, held_out.blocks, 0, validation.scheduler.seed)
        start = make_plan(problem).start
        evaluate = partial(make_objective(problem, weigh_at(problem, start), path.weights[-1]), start)
        evaluate()
    except RevarbError:  # its fits will say so
        return lambda: None
    return evaluate


def estimate_last_fits(durations: Sequence[Duration], members: int, workers: int) -> float:
    """About how long the last fits of the members take, side by side: those of the slowest paths."""
    finals = sorted((each.final for each in durations), reverse=True)[:members]
    return max([sum(finals) / workers, *finals[:1]])
