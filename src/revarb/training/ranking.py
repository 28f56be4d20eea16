"""Which candidate is taken, and the sentence that says why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from revarb.data.scaling import Standardiser
from revarb.data.series import Series
from revarb.errors import ComputationError
from revarb.models.choice import COLD_RUNS, Candidate, Choice
from revarb.models.fitted_arx import FittedARX
from revarb.models.fitted_rgp import FittedRGP
from revarb.training.candidates import UNINFORMATIVE, Structure
from revarb.training.one_standard_error import compare_with_best, find_simplest, log_errors
from revarb.training.stability import is_stable
from revarb.training.trials import HeldOut, Scored
from revarb.training.yardsticks import measure_mean

AHEAD = (1, 2, 3)  # steps from filtered states that are scored instead
WINDOWS = "predictions 1 to 3 steps ahead, because cold runs tell nothing"


@dataclass(frozen=True, eq=False)
class Ranking:
    """The candidates with what decides between them; `taken` is the position of the one that is taken."""

    scored: tuple[Scored, ...]
    taken: int
    choice: Choice

    @property
    def winner(self) -> Scored:
        """The candidate that is taken."""
        return self.scored[self.taken]

    def list_best(self, count: int) -> list[Scored]:
        """The best complete and stable nonlinear candidates, one per structure, the one that is taken first."""
        pairs = zip(self.scored, self.choice.candidates, strict=False)  # structures that failed come after these
        others = [each for each, candidate in pairs if each.structure is not None and candidate.note in ("", "taken")]
        ordered = sorted(others, key=lambda each: float(np.mean(log_errors(each.errors))))
        best = [self.winner]
        for each in ordered:
            if each.structure not in [known.structure for known in best]:
                best.append(each)
        return best[:count]


def rank(
    scored: Sequence[Scored], held_out: HeldOut, failures: Mapping[Structure, str], interrupted: bool = False
) -> Ranking:
    """Decide between the candidates that were scored on all stretches."""
    complete = [each for each in scored if each.complete and np.isfinite(each.errors).all()]
    complete = complete or [each for each in scored if np.isfinite(each.errors).any()]
    if not complete:
        if interrupted:
            raise KeyboardInterrupt  # before anything was finished
        reasons = "; ".join(dict.fromkeys(failures.values())) or "all held-out simulations diverged"
        raise ComputationError(f"no candidate could be fitted: {reasons}")
    stable = [each for each in complete if _is_stable(each, held_out)] or complete
    scored_by = COLD_RUNS
    if _tells_nothing(stable):
        scored_by = WINDOWS
        stable = [replace(each, errors=_measure_ahead(each, held_out)) for each in stable]
    known = ~np.isnan(np.stack([each.errors for each in stable])).any(axis=0)
    errors = np.stack([each.errors[known] for each in stable])
    taken = stable[find_simplest(errors, [each.complexity for each in stable])]
    updated = [next((new for new in stable if new.name == each.name), each) for each in scored]
    position = [each.name for each in updated].index(taken.name)
    choice = _make_choice(updated, stable, errors, taken, scored_by, failures)
    choice = replace(
        choice,
        linear_error=_find_best_linear(stable),
        mean_error=_mean_error(measure_mean(held_out.records, held_out.stretches)),
    )
    if interrupted:
        choice = _mark_unfinished(choice)
    return Ranking(tuple(updated), position, choice)


def _find_best_linear(scored: Sequence[Scored]) -> float | None:
    errors = [_mean_error(each.errors) for each in scored if each.structure is None]
    return min((error for error in errors if np.isfinite(error)), default=None)


def _mark_unfinished(choice: Choice) -> Choice:
    candidates = tuple(
        replace(each, note="unfinished") if each.note == "dropped" else each for each in choice.candidates
    )
    sentence = f"Interrupted: {choice.taken} is the best of the candidates that were finished; others were not."
    return replace(choice, candidates=candidates, sentence=sentence)


def _is_stable(scored: Scored, held_out: HeldOut) -> bool:
    return is_stable([(model.chain, model.preprocessor) for model in scored.folds.values()], held_out.records)


def _tells_nothing(scored: Sequence[Scored]) -> bool:
    # Chaotic systems: no cold run follows the record, whatever the model.
    return min(_mean_error(each.errors) for each in scored) > UNINFORMATIVE


def _mean_error(errors: np.ndarray) -> float:
    return float(np.exp(np.mean(log_errors(errors[~np.isnan(errors)]))))


def _measure_ahead(scored: Scored, held_out: HeldOut) -> np.ndarray:
    # Errors of predictions from filtered states, on every stretch by the fold that left it out.
    errors = np.full(len(held_out.stretches), np.nan)
    for fold, model in scored.folds.items():
        squares = {
            number: _square_errors(model, held_out.records[number], held_out.scaling)
            for number in {stretch.record for stretch in held_out.stretches if stretch.fold == fold}
        }
        for number, stretch in enumerate(held_out.stretches):
            if stretch.fold == fold:
                errors[number] = np.sqrt(np.nanmean(squares[stretch.record][stretch.rows]))
    return errors


def _square_errors(model: FittedARX | FittedRGP, record: Series, scaling: Standardiser) -> np.ndarray:
    # Mean over the numbers of steps; infinite where the filter diverges.
    try:
        paths = [model.predict(record, steps).mean for steps in AHEAD]
    except ComputationError:
        return np.full(record.y.shape, np.inf)
    return np.mean([((path - record.y) / scaling.y_std) ** 2 for path in paths], axis=0)


def _make_choice(
    scored: Sequence[Scored],
    stable: Sequence[Scored],
    errors: np.ndarray,
    taken: Scored,
    scored_by: str,
    failures: Mapping[Structure, str],
) -> Choice:
    best, _, deviations = compare_with_best(errors)
    known = {each.name: float(deviations[number]) for number, each in enumerate(stable) if number != best}
    names = [one.name for one in stable]
    candidates = [_describe(each, known.get(each.name), taken.name, names, scored_by) for each in scored]
    candidates += [Candidate(each.describe(0.0), None, None, 0, 0.0, "failed") for each in failures]
    return Choice(tuple(candidates), taken.name, _explain(stable, errors, taken, scored_by), scored_by)


def _describe(
    scored: Scored, standard_error: float | None, taken: str, stable: Sequence[str], scored_by: str
) -> Candidate:
    # A table has one measure: candidates that were judged by cold runs only have no error where predictions decide.
    measured = scored.errors[~np.isnan(scored.errors)]
    comparable = scored_by == COLD_RUNS or scored.name in stable
    error = _mean_error(scored.errors) if comparable and len(measured) and np.isfinite(measured).all() else None
    if scored.name == taken:
        note = "taken"
    elif not scored.complete:
        note = "dropped"
    else:
        note = "" if scored.name in stable else "unstable"
    return Candidate(scored.name, error, standard_error, len(measured), scored.seconds, note)


def _explain(stable: Sequence[Scored], errors: np.ndarray, taken: Scored, scored_by: str) -> str:
    means = np.exp(log_errors(errors).mean(axis=1))
    error, best = means[[each.name for each in stable].index(taken.name)], means.min()
    linear = [mean for mean, each in zip(means, stable, strict=True) if each.structure is None]
    others = [mean for mean, each in zip(means, stable, strict=True) if each.structure is not None]
    measure = "held-out error" if scored_by == COLD_RUNS else "held-out error 1 to 3 steps ahead"
    if taken.structure is None:
        beside = f"; the best nonlinear model has {min(others):.3g}" if others else ""
        return (
            f"A linear model is enough: its {measure} is {error:.3g} of the output's standard deviation{beside}. "
            "Nothing nonlinear was found that is better by more than one standard error."
        )
    beside = f", that of the best linear model {min(linear):.3g}" if linear else ""
    why = "the best" if error == best else f"the simplest within one standard error of the best, {best:.3g}"
    return f"{taken.name}: its {measure} is {error:.3g} of the output's standard deviation{beside}; it is {why}."
