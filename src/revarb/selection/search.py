"""The order in which candidates are tried: linear models first, then the fits of all other candidates side by side."""

from revarb.errors import warn_user
from revarb.fitting.held_out import FOLDS
from revarb.selection.candidates import DefaultCandidates, GivenCandidates
from revarb.selection.linear import find_delay, try_linear
from revarb.selection.ranking import Ranking, rank
from revarb.selection.schedule import FitJob
from revarb.selection.validation import Validation

AnyCandidates = DefaultCandidates | GivenCandidates


def try_candidates(validation: Validation, candidates: AnyCandidates, members: int) -> Ranking:
    """Try linear models, then all folds of every path; none is dropped before it was scored on all blocks."""
    held_out, scheduler = validation.held_out, validation.scheduler
    default = isinstance(candidates, DefaultCandidates)
    linear = try_linear(candidates.list_linear_orders(held_out), held_out, quiet=default)
    paths = candidates.list_paths(held_out.records, find_delay(linear))
    folds = scheduler.batch if scheduler.batched else range(FOLDS)
    validation.fit([FitJob(path, fold) for path in paths for fold in folds])
    results = [*linear, *(result for path in paths for result in validation.score(path))]
    if not default:
        for path, reason in validation.failures.items():
            warn_user(f"{path.name} could not be fitted and is left out: {reason}")
    return rank(results, held_out, validation.failures, members, bool(scheduler.progress.pressed))
