"""Student-t noise as a candidate: tried where held-out errors have heavy tails, taken if their likelihood says so."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float64

from revarb.data.distribution import log_density
from revarb.data.suspects import mark_suspects
from revarb.errors import RevarbError
from revarb.models.choice import COLD_RUNS, Candidate
from revarb.models.fitted_rgp import FittedRGP
from revarb.training.calibrate import measure_held_out_runs
from revarb.training.candidates import Structure, list_structures
from revarb.training.choice_calibration import calibrate_linear, calibrate_nonlinear
from revarb.training.linear_trial import try_linear
from revarb.training.one_standard_error import log_errors
from revarb.training.ranking import Ranking, rank
from revarb.training.segments import cut_segments, simulate_segments
from revarb.training.stretches import FOLDS, Stretch
from revarb.training.trials import HeldOut, Scored, Trials, leave_out_suspects

MIN_SHARE = 0.015  # of the samples of an output that must look like outliers; fast systems have a few that do


def try_student(ranking: Ranking, trials: Trials) -> Ranking:
    """The ranking, or where the errors of the candidate that is taken have heavy tails, another one.

    Then the candidates are compared again without the samples that look like outliers, and the best of them is tried
    with Student-t noise.
    """
    held_out = trials.held_out
    if trials.progress.pressed or not _has_spikes(ranking.winner, held_out):
        return ranking
    trials = replace(trials, held_out=leave_out_suspects(held_out))
    ranking = _rank_again(ranking, trials)
    winner = ranking.winner
    structure = _add_student(winner.structure or list_structures(held_out.records, winner.delay)[0])
    trials.run([(structure, fold) for fold in range(FOLDS)])
    complete = [each for each in trials.score(structure) if each.complete and np.isfinite(each.errors).all()]
    if not complete:
        return ranking
    best = min(complete, key=lambda each: float(np.mean(log_errors(each.errors))))
    try:
        gains = measure_densities(best, held_out) - measure_densities(winner, held_out)
    except RevarbError:  # a held-out run diverged
        return ranking
    return _add_candidate(ranking, best, gains)


def _has_spikes(scored: Scored, held_out: HeldOut) -> bool:
    outputs = [held_out.records[each.record].y[each.rows] for each in _by_fold(held_out)]
    return has_heavy_tails(_collect_errors(scored, held_out), outputs)


def _rank_again(ranking: Ranking, trials: Trials) -> Ranking:
    tried = list(dict.fromkeys(each.structure for each in ranking.scored if each.structure is not None))
    scored = [*try_linear(trials.held_out), *(each for structure in tried for each in trials.score(structure))]
    return rank(scored, trials.held_out, trials.failures)


def _add_student(structure: Structure) -> Structure:
    return replace(
        structure, name=f"{structure.name}, Student-t noise", spec=replace(structure.spec, noise="student-t")
    )


def has_heavy_tails(
    errors: Sequence[Float64[np.ndarray, "_ Dy"]], outputs: Sequence[Float64[np.ndarray, "_ Dy"]]
) -> bool:
    """Whether held-out errors have spikes, stretch by stretch, where the measured outputs have them too.

    Slow errors, of a model that is wrong somewhere, are no reason for another noise, and neither are sudden ones where
    the output does nothing unusual.
    """
    marks = [one & other for one, other in zip(mark_suspects(errors), mark_suspects(outputs), strict=True)]
    measured = [np.isfinite(error) for error in errors]
    shares = np.concatenate(marks).sum(axis=0) / np.maximum(np.concatenate(measured).sum(axis=0), 1)
    return bool(np.any(shares > MIN_SHARE))


def _by_fold(held_out: HeldOut) -> list[Stretch]:
    return sorted(held_out.stretches, key=lambda stretch: stretch.fold)


def _collect_errors(scored: Scored, held_out: HeldOut) -> list[np.ndarray]:
    # Of all measured samples, those that look like outliers included.
    errors, segments = [], cut_segments(held_out.records, _by_fold(held_out))
    for fold, model in sorted(scored.folds.items()):
        inside = [segment for segment in segments if segment.fold == fold]
        errors += [
            error / held_out.scaling.y_std for error in simulate_segments(model.chain, model.preprocessor, inside)
        ]
    return errors


def measure_densities(scored: Scored, held_out: HeldOut) -> Float64[np.ndarray, " S"]:
    """Mean log density of the measurements of every stretch under the calibrated distribution, raw units.

    Candidates with another noise have another scaling, so z-scores cannot be compared.
    """
    if scored.structure is None:
        std, _ = calibrate_linear(scored, held_out, held_out.scaling)
        densities = [log_density(error, std[None, :]) for error in _collect_errors(scored, held_out)]
        return np.array([np.nanmean(each) for each in densities]) - np.mean(np.log(held_out.scaling.y_std))
    calibration = calibrate_nonlinear(scored, held_out)
    folds = [model for _, model in sorted(scored.folds.items()) if isinstance(model, FittedRGP)]
    runs = measure_held_out_runs(folds, held_out.records, held_out.stretches, calibration.latent_scale)
    return np.array([
        np.mean(log_density(
            run.error, calibration.factors[-1] * np.sqrt(run.variance + calibration.output_noise),
            calibration.degrees_of_freedom,
        )) - np.mean(np.log(scored.folds[stretch.fold].scaling.y_std))
        for run, stretch in zip(runs, _by_fold(held_out), strict=True)
    ])  # fmt: skip


def _add_candidate(ranking: Ranking, student: Scored, gains: Float64[np.ndarray, " S"]) -> Ranking:
    choice, scored = ranking.choice, (*ranking.scored, student)
    gain, deviation = float(np.mean(gains)), float(np.std(gains, ddof=1) / np.sqrt(len(gains)))
    taken = gain > deviation
    # A table has one measure: where predictions decide, cold runs are not shown.
    error = float(np.exp(np.mean(log_errors(student.errors)))) if choice.scored_by == COLD_RUNS else None
    new = Candidate(student.name, error, None, len(student.errors), student.seconds, "taken" if taken else "")
    # Structures that failed have no score, and stay last.
    known = [replace(each, note="") if taken and each.note == "taken" else each for each in choice.candidates]
    candidates = (*known[: len(ranking.scored)], new, *known[len(ranking.scored) :])
    if not taken:
        return replace(ranking, scored=scored, choice=replace(choice, candidates=candidates))
    sentence = (
        f"{student.name}: the errors on held-out stretches have heavy tails, as outliers make them, and this noise "
        f"raises their mean log likelihood by {gain:.2g} (standard error {deviation:.2g}) over {choice.taken}."
    )
    choice = replace(choice, candidates=candidates, taken=student.name, sentence=sentence)
    return Ranking(scored, len(scored) - 1, choice)
