"""The order in which candidates are tried: cheap ones first, and those that are far behind are dropped."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from revarb.errors import warn_user
from revarb.fitting.held_out import FOLDS, HeldOut, compute_held_out_error
from revarb.fitting.weight_path import ALL
from revarb.selection.candidates import CandidatePath, DefaultCandidates, GivenCandidates
from revarb.selection.linear import find_delay, try_linear
from revarb.selection.ranking import Ranking, rank
from revarb.selection.schedule import FitJob
from revarb.selection.validation import CandidateResult, Validation

DROP = 0.4  # a path is dropped after its first fold where its log error is larger than the best one's by this
DROP_VARIANT = 0.1  # a variant of the best path, which is rarely better by much

AnyCandidates = DefaultCandidates | GivenCandidates


def try_candidates(validation: Validation, candidates: AnyCandidates) -> Ranking:
    """Try linear models, the first fold of every path, all folds of those that are left, then variants of the best."""
    held_out, scheduler = validation.held_out, validation.scheduler
    default = isinstance(candidates, DefaultCandidates)
    linear = try_linear(candidates.list_linear_orders(held_out), held_out, quiet=default)
    paths = candidates.list_paths(held_out.records, find_delay(linear))
    if scheduler.batched:
        _fit_recipes(validation, paths, candidates)
    can_start_last = scheduler.workers > 1 and scheduler.uses_all_records  # the fit to all records, beside the folds
    only = [FitJob(path, ALL) for path in paths if len(paths) == 1 and can_start_last]
    _try_paths(validation, paths, linear, paths, DROP, only)
    results = [result for path in paths for result in validation.score(path)]
    if paths:
        best = _find_best(results, paths)
        variants = candidates.list_variants(best, held_out.records)
        # Variants are rarely better: the fit of the best path to all records begins where a process would be idle.
        ahead = [FitJob(best, ALL)] if variants and can_start_last else []
        _try_paths(validation, variants, linear, paths, DROP_VARIANT, ahead)
        results += [result for path in variants for result in validation.score(path)]
    if not default:
        for path, reason in validation.failures.items():
            warn_user(f"{path.name} could not be fitted and is left out: {reason}")
    return rank([*linear, *results], held_out, validation.failures, bool(scheduler.progress.pressed))


def _fit_recipes(validation: Validation, paths: Sequence[CandidatePath], candidates: AnyCandidates) -> None:
    # The batch of a path has room for its other recipe, whether that becomes a variant of the best or not: their fits
    # have the same shape.
    records = validation.held_out.records
    variants = {path: candidates.list_variants(path, records) for path in paths}
    recipes = [
        each
        for path, own in variants.items()
        for each in own
        if replace(each.spec, recipe=path.spec.recipe) == path.spec
    ]
    likely = [each for each in variants[paths[-1]] if each not in recipes] if paths else []
    folds = validation.scheduler.batch
    validation.fit([FitJob(path, fold) for path in (*paths, *recipes) for fold in folds], likely)


def _try_paths(
    validation: Validation,
    tried: Sequence[CandidatePath],
    linear: Sequence[CandidateResult],
    before: Sequence[CandidatePath],
    margin: float,
    ahead: Sequence[FitJob] = (),
) -> None:
    # The first fold of all, then the other folds of those that are not far behind the best candidate so far. Batched,
    # the folds take hardly more time than one, and the fit to all records is one of them.
    if validation.scheduler.batched:
        validation.fit([FitJob(path, fold) for path in tried for fold in validation.scheduler.batch])
        return
    # Linear parts are never dropped: their other folds come along too, last, where a process would be idle.
    others = range(1, FOLDS)
    idle = [*ahead, *(FitJob(path, fold) for path in tried if path.linear_part for fold in others)]
    validation.fit([*(FitJob(path, 0) for path in tried), *idle])
    kept = _drop(validation, tried, linear, before, margin)
    validation.fit([FitJob(path, fold) for path in kept for fold in others])


def _find_best(results: Sequence[CandidateResult], paths: Sequence[CandidatePath]) -> CandidatePath:
    complete = [each for each in results if each.complete]
    best = min(complete, key=lambda each: compute_held_out_error(each.errors), default=None)
    return paths[0] if best is None or best.path is None else best.path


def _drop(
    validation: Validation,
    tried: Sequence[CandidatePath],
    linear: Sequence[CandidateResult],
    before: Sequence[CandidatePath],
    margin: float,
) -> list[CandidatePath]:
    # Paths that are not far behind the best candidate on the blocks of the first fold, and the linear part: it is the
    # quickest, and what is nearly linear must not be lost to three blocks.
    scores = {path: _score_first(validation.score(path), validation.held_out) for path in {*tried, *before}}
    best = min([*scores.values(), _score_first(linear, validation.held_out)])
    kept = [path for path in tried if path.linear_part or scores[path] <= best + margin]
    dropped = [FitJob(path, fold) for path in tried if path not in kept for fold in range(1, FOLDS)]
    validation.scheduler.progress.skip(dropped)
    return kept


def _score_first(results: Sequence[CandidateResult], held_out: HeldOut) -> float:
    first = [block.fold == 0 for block in held_out.blocks]
    return min((float(np.log(compute_held_out_error(each.errors[first]))) for each in results), default=np.inf)
