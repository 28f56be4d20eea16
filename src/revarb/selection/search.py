"""The order in which candidates are tried: linear models first, then the paths, the most promising one first."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from revarb.errors import InputError, warn_user
from revarb.fitting.held_out import FOLDS
from revarb.selection.candidates import CandidatePath, DefaultCandidates, GivenCandidates
from revarb.selection.duration import Duration, estimate_last_fits, estimate_total, measure_durations
from revarb.selection.linear import find_delay, try_linear
from revarb.selection.ranking import Ranking, rank
from revarb.selection.schedule import FitJob
from revarb.selection.validation import Validation

AnyCandidates = DefaultCandidates | GivenCandidates


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
    names = ", ".join(path.label for path in left_out)
    return replace(ranking, remarks=(*ranking.remarks, f"The time limit left untried: {names}."))


def _fit_folds(validation: Validation, paths: Sequence[CandidatePath], budget: Budget) -> list[CandidatePath]:
    # Those that there was no time for.
    scheduler = validation.scheduler
    if not paths or scheduler.progress.pressed:
        return []
    folds = scheduler.batch if scheduler.batched else range(FOLDS)
    if scheduler.batched:  # how long a batch takes is not known: it begins if there is any time left
        durations = dict.fromkeys(paths, Duration(0.0, 0.0))
    else:
        durations = measure_durations(validation, paths)
        total = estimate_total(durations, budget.members, scheduler.workers)
        scheduler.progress.say(f"about {total:.0f} s for {len(paths)} structures with {FOLDS} folds each")
    if budget.deadline is None:
        validation.fit([FitJob(path, fold) for path in paths for fold in folds])
        return []
    left_out, started = [], []
    for path in paths:
        needed = estimate_last_fits([*started, durations[path]], budget.members, scheduler.workers)
        if time.monotonic() + durations[path].folds + needed > budget.deadline:
            left_out.append(path)
        else:
            started.append(durations[path])
            validation.fit([FitJob(path, fold) for fold in folds])
    return left_out
