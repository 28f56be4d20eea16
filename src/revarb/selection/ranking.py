"""Which candidates are members of the mixture, and the sentence that says why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from revarb.errors import ComputationError
from revarb.fitting.held_out import FOLDS, HeldOut, compute_held_out_error, measure_block_errors
from revarb.fitting.reference_errors import compare_with_best, measure_mean
from revarb.models.choice import COLD_RUNS, HARDLY_BETTER, Candidate, Choice, format_error
from revarb.models.ensemble import Ensemble, Member
from revarb.selection.candidates import CandidateKey, CandidatePath
from revarb.selection.linear import UNINFORMATIVE
from revarb.selection.validation import CandidateResult, can_predict, is_stable, score_predictions

# Of members, settled on the development set (docs/design/decisions):
MAX_RATIO = 1.5  # of the held-out errors of a member and of the best one
MAX_DEVIATIONS = 2.0  # standard errors by which a member may be worse than the best one

HARDLY_EASIER = 0.5  # of the error of cold runs: chaotic, or noisy, where that of predictions is larger
PREDICTIONS = "predictions 1 to 3 steps ahead, because no cold run follows the record"


@dataclass(frozen=True, eq=False)
class Ranking:
    """All candidates; those that can be compared, best first; and those whose mixture is the model.

    `mixture` is what the members give together, None where there is one member.
    """

    results: tuple[CandidateResult, ...]
    compared: tuple[CandidateResult, ...]
    members: tuple[CandidateResult, ...]
    mixture: CandidateResult | None
    scored_by: str
    mean_error: float
    failures: Mapping[CandidatePath, str]
    interrupted: bool = False
    remarks: tuple[str, ...] = ()  # further sentences

    @property
    def best(self) -> CandidateResult:
        """The member with the smallest held-out error."""
        return self.members[0]

    @property
    def taken(self) -> CandidateResult:
        """What is returned: the mixture, or the only member."""
        return self.mixture or self.best

    def describe(self) -> Choice:
        """The table of all candidates, and why the members were taken."""
        return Choice(
            tuple(_list_rows(self)),
            self.taken.name,
            " ".join((_explain(self), *self.remarks)),
            self.scored_by,
            _find_best_linear(self.compared),
            self.mean_error,
        )


def rank(
    results: Sequence[CandidateResult],
    held_out: HeldOut,
    failures: Mapping[CandidatePath, str],
    members: int,
    interrupted: bool = False,
) -> Ranking:
    """Sort the candidates that were scored on all blocks by their held-out error, and select the members."""
    complete = [each for each in results if each.complete and np.isfinite(each.errors).all()]
    complete = complete or [each for each in results if np.isfinite(each.errors).any()]
    if not complete:
        if interrupted:
            raise KeyboardInterrupt  # before anything was finished
        reasons = "; ".join(dict.fromkeys(failures.values())) or "all held-out simulations diverged"
        raise ComputationError(f"no candidate could be fitted: {reasons}")
    stable = [each for each in complete if is_stable(each, held_out.records)] or complete
    scored_by = COLD_RUNS
    if (cold := _find_least_error(stable)) > UNINFORMATIVE and all(map(can_predict, stable)):
        ahead = [score_predictions(each, held_out) for each in stable]
        if np.inf > _find_least_error(ahead) > HARDLY_EASIER * cold:
            scored_by, stable = PREDICTIONS, ahead
    compared = sorted(stable, key=lambda each: compute_held_out_error(each.errors))
    known = {each.key: each for each in compared}
    ranking = Ranking(
        tuple(known.get(each.key, each) for each in results), tuple(compared), (compared[0],), None, scored_by,
        measure_mean(held_out), failures, interrupted,
    )  # fmt: skip
    return ranking if interrupted else select_members(ranking, held_out, members)


def _find_least_error(results: Sequence[CandidateResult]) -> float:
    return min(compute_held_out_error(each.errors) for each in results)


def select_members(ranking: Ranking, held_out: HeldOut, count: int) -> Ranking:
    """The ranking with its members: the `count` best structures, each with its best weight, but no clearly worse one.

    Which of the best candidates is the first depends on rounding, and their mean is better than each of them
    (docs/design/decisions). A linear model that is best is alone, and so is any other where none follows the record.
    """
    [best, *_] = ranking.compared
    by_structure: dict[CandidatePath | None, CandidateResult] = {}
    for each in filter(can_be_mixed, list_close(ranking.compared)):
        by_structure.setdefault(each.path, each)
    members = tuple(by_structure.values())[:count]
    follows = ranking.scored_by == COLD_RUNS and compute_held_out_error(best.errors) <= UNINFORMATIVE
    if best.path is None or len(members) < 2 or not can_be_mixed(best) or not follows:
        return replace(ranking, members=(best,), mixture=None)
    return replace(ranking, members=members, mixture=mix_candidates(members, held_out))


def list_close(compared: Sequence[CandidateResult]) -> list[CandidateResult]:
    """Those that are not clearly worse than the first, which is the best."""
    best, worse = compute_held_out_error(compared[0].errors), _compare(compared)

    def is_close(result: CandidateResult) -> bool:
        difference, deviation = worse[result.key]
        ratio = compute_held_out_error(result.errors) / best
        return ratio <= MAX_RATIO and difference <= MAX_DEVIATIONS * deviation

    return list(filter(is_close, compared))


def can_be_mixed(result: CandidateResult) -> bool:
    """Whether it can be a member: recurrent GPs and linear models can, the others have no start from measured rows."""
    return result.complete and all(isinstance(model, Member) for model in result.folds.values())


def mix_candidates(members: Sequence[CandidateResult], held_out: HeldOut) -> CandidateResult:
    """The mixture of candidates as a candidate: its models without each fold are mixtures too."""
    folds = {fold: Ensemble.from_candidates([each.folds[fold] for each in members]) for fold in range(FOLDS)}
    key = CandidateKey(tuple(each.key for each in members), name=f"mixture of {len(members)}")
    return CandidateResult(key, folds, measure_block_errors(folds, held_out), 0.0)


def _find_best_linear(results: Sequence[CandidateResult]) -> float | None:
    errors = [compute_held_out_error(each.errors) for each in results if each.path is None]
    return min((error for error in errors if np.isfinite(error)), default=None)


def _list_rows(ranking: Ranking) -> list[Candidate]:
    [best, *others] = ranking.compared
    worse = _compare(ranking.compared)
    deviations = {best.key: None, **{each.key: worse[each.key].deviation for each in others}}
    rows = [_describe_result(each, ranking, deviations) for each in ranking.results]
    if ranking.mixture is not None:
        rows.append(_describe_result(ranking.mixture, ranking, deviations))
    return rows + [Candidate(path.at(0.0).name, None, None, 0, 0.0, "failed") for path in ranking.failures]


class _Comparison(NamedTuple):
    difference: float
    deviation: float


def _compare(compared: Sequence[CandidateResult]) -> dict[CandidateKey, _Comparison]:
    # Mean of log(error / error of the best) and its standard error, on the blocks that all have.
    known = ~np.isnan(np.stack([each.errors for each in compared])).any(axis=0)
    _, *found = compare_with_best(np.stack([each.errors[known] for each in compared]))
    return {each.key: _Comparison(*map(float, pair)) for each, *pair in zip(compared, *found, strict=True)}


def _describe_result(
    result: CandidateResult, ranking: Ranking, deviations: Mapping[CandidateKey, float | None]
) -> Candidate:
    # A table has one measure: candidates that were judged by cold runs only have no error where predictions decide.
    compared = result.key in deviations or result is ranking.mixture
    measured = result.errors[~np.isnan(result.errors)]
    known = len(measured) and np.isfinite(measured).all() and (compared or ranking.scored_by == COLD_RUNS)
    error = compute_held_out_error(measured) if known else None
    is_member = ranking.mixture is not None and any(result.key == each.key for each in ranking.members)
    if result.key == ranking.taken.key:
        note = "taken"
    elif is_member:
        note = "member"
    elif not result.complete:
        note = "unfinished"
    else:
        note = "" if compared else "unstable"
    weight = 1.0 / len(ranking.members) if is_member else 0.0
    return Candidate(result.name, error, deviations.get(result.key), len(measured), result.seconds, note, weight)


def _explain(ranking: Ranking) -> str:
    best, taken = ranking.best, ranking.taken
    if ranking.interrupted:
        return f"Interrupted: {best.name} is the best of the candidates that were finished; others were not."
    error = compute_held_out_error(taken.errors)
    measure = "held-out error" if ranking.scored_by == COLD_RUNS else "held-out error 1 to 3 steps ahead"
    about = f"its {measure} is {format_error(error)} of the output's standard deviation"
    linear = _find_best_linear(ranking.compared)
    others = [compute_held_out_error(each.errors) for each in ranking.compared if each.path is not None]
    others = [error for error in others if np.isfinite(error)]
    if best.path is None and best is ranking.compared[0]:
        if not ranking.failures and all(each.path is None for each in ranking.results):
            return f"{best.name}: {about}. Only linear models were tried."
        beside = f"; the best nonlinear model has {format_error(min(others))}" if others else ""
        follows = ranking.scored_by == COLD_RUNS and error < HARDLY_BETTER * ranking.mean_error
        found = "A linear model is enough" if follows else "A linear model is taken, but none is good enough"
        return f"{found}: {about}{beside}. Nothing nonlinear was found that is better."
    beside = "" if linear is None else f", that of the best linear model {format_error(linear)}"
    text = f"{taken.name}: {about}{beside}"
    if ranking.mixture is None:
        fitted = "" if best is ranking.compared[0] else " that was fitted to all records"
        return f"{text}; it is the best{fitted}."
    alone = [compute_held_out_error(each.errors) for each in ranking.members]
    return f"{text}. Its members have {format_error(alone[0])} to {format_error(alone[-1])} alone."
