"""Which candidate is taken, and the sentence that says why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from revarb.errors import ComputationError
from revarb.fitting.held_out import HeldOut, compute_held_out_error
from revarb.fitting.reference_errors import compare_with_best, find_simplest, measure_mean
from revarb.models.choice import COLD_RUNS, Candidate, Choice
from revarb.selection.candidates import CandidateKey, CandidatePath
from revarb.selection.linear import UNINFORMATIVE
from revarb.selection.validation import CandidateResult, is_stable, measure_ahead

PREDICTIONS = "predictions 1 to 3 steps ahead, because cold-start errors are uninformative here"


@dataclass(frozen=True, eq=False)
class Ranking:
    """The candidates with what decides between them; `taken` is the identity of the one that is taken."""

    results: tuple[CandidateResult, ...]
    taken: CandidateKey
    choice: Choice  # its candidates begin with those of `results`, in the same order

    @property
    def winner(self) -> CandidateResult:
        """The candidate that is taken."""
        return next(each for each in self.results if each.key == self.taken)

    def list_best(self, count: int) -> list[CandidateResult]:
        """The best complete and stable nonlinear candidates, one per path, the one that is taken first."""
        pairs = zip(self.results, self.choice.candidates[: len(self.results)], strict=True)
        others = [each for each, row in pairs if each.path is not None and row.note in ("", "taken")]
        best = {self.winner.path: self.winner}
        for each in sorted(others, key=lambda each: compute_held_out_error(each.scores)):
            best.setdefault(each.path, each)
        return list(best.values())[:count]


def rank(
    results: Sequence[CandidateResult],
    held_out: HeldOut,
    failures: Mapping[CandidatePath, str],
    interrupted: bool = False,
) -> Ranking:
    """Decide between the candidates that were scored on all blocks."""
    complete = [each for each in results if each.complete and np.isfinite(each.errors).all()]
    complete = complete or [each for each in results if np.isfinite(each.errors).any()]
    if not complete:
        if interrupted:
            raise KeyboardInterrupt  # before anything was finished
        reasons = "; ".join(dict.fromkeys(failures.values())) or "all held-out simulations diverged"
        raise ComputationError(f"no candidate could be fitted: {reasons}")
    stable = [each for each in complete if is_stable(each, held_out.records)] or complete
    scored_by = COLD_RUNS
    if min(compute_held_out_error(each.errors) for each in stable) > UNINFORMATIVE:
        # Chaotic systems: no cold run follows the record, whatever the model.
        scored_by = PREDICTIONS
        stable = [replace(each, ahead_errors=measure_ahead(each, held_out)) for each in stable]
    known = ~np.isnan(np.stack([each.scores for each in stable])).any(axis=0)
    errors = np.stack([each.scores[known] for each in stable])
    taken = stable[find_simplest(errors, [each.key.complexity for each in stable])]
    best, _, deviations = compare_with_best(errors)
    standard_errors = {each.key: float(deviations[n]) if n != best else None for n, each in enumerate(stable)}
    compared = {each.key: each for each in stable}
    updated = tuple(compared.get(each.key, each) for each in results)
    rows = [_describe_result(each, standard_errors, taken, scored_by, interrupted) for each in updated]
    rows += [Candidate(path.at(0.0).name, None, None, 0, 0.0, "failed") for path in failures]
    sentence = _explain_interrupted(taken) if interrupted else _explain(stable, taken, scored_by)
    choice = Choice(
        tuple(rows), taken.name, sentence, scored_by, _find_best_linear(stable), measure_mean(held_out)
    )  # fmt: skip
    return Ranking(updated, taken.key, choice)


def _find_best_linear(results: Sequence[CandidateResult]) -> float | None:
    errors = [compute_held_out_error(each.scores) for each in results if each.path is None]
    return min((error for error in errors if np.isfinite(error)), default=None)


def _describe_result(
    result: CandidateResult,
    standard_errors: Mapping[CandidateKey, float | None],
    taken: CandidateResult,
    scored_by: str,
    interrupted: bool,
) -> Candidate:
    # A table has one measure: candidates that were judged by cold runs only have no error where predictions decide.
    scores, compared = result.scores, result.key in standard_errors
    measured = scores[~np.isnan(scores)]
    comparable = scored_by == COLD_RUNS or compared
    error = compute_held_out_error(scores) if comparable and len(measured) and np.isfinite(measured).all() else None
    if result.key == taken.key:
        note = "taken"
    elif not result.complete:
        note = "unfinished" if interrupted else "dropped"
    else:
        note = "" if compared else "unstable"
    return Candidate(result.name, error, standard_errors.get(result.key), len(measured), result.seconds, note)


def _explain_interrupted(taken: CandidateResult) -> str:
    return f"Interrupted: {taken.name} is the best of the candidates that were finished; others were not."


def _explain(stable: Sequence[CandidateResult], taken: CandidateResult, scored_by: str) -> str:
    errors = {each.key: compute_held_out_error(each.scores) for each in stable}
    error, best = errors[taken.key], min(errors.values())
    linear = [each for key, each in errors.items() if key.path is None]
    others = [each for key, each in errors.items() if key.path is not None]
    measure = "held-out error" if scored_by == COLD_RUNS else "held-out error 1 to 3 steps ahead"
    if taken.path is None:
        beside = f"; the best nonlinear model has {min(others):.3g}" if others else ""
        return (
            f"A linear model is enough: its {measure} is {error:.3g} of the output's standard deviation{beside}. "
            "Nothing nonlinear was found that is better by more than one standard error."
        )
    beside = f", that of the best linear model {min(linear):.3g}" if linear else ""
    why = "the best" if error == best else f"the simplest within one standard error of the best, {best:.3g}"
    return f"{taken.name}: its {measure} is {error:.3g} of the output's standard deviation{beside}; it is {why}."
