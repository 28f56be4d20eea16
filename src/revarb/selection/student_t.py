"""Student-t noise as a candidate: tried where held-out errors have heavy tails, taken if their likelihood says so."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float64

from revarb.data.scaling import Standardiser, log_density
from revarb.data.training_records import mark_outliers
from revarb.errors import RevarbError
from revarb.fitting.calibrate import collect_run_errors
from revarb.fitting.held_out import FOLDS, HeldOut, HeldOutBlock, compute_held_out_error, hold_out
from revarb.fitting.problem import mask_if_possible
from revarb.models.choice import COLD_RUNS, Candidate
from revarb.selection.candidates import CandidatePath, DefaultCandidates
from revarb.selection.final_fit import calibrate_candidate
from revarb.selection.linear import calibrate_linear, collect_cold_errors, try_linear
from revarb.selection.ranking import Ranking, rank
from revarb.selection.schedule import FitJob
from revarb.selection.validation import CandidateResult, Validation

MIN_SHARE = 0.015  # of the samples of an output that must look like outliers; fast systems have a few that do


def try_student(ranking: Ranking, validation: Validation, candidates: DefaultCandidates) -> Ranking:
    """The ranking, or where the errors of the candidate that is taken have heavy tails, another one.

    Then the candidates are compared again without the samples that look like outliers, and the best of them is tried
    with Student-t noise.
    """
    held_out = validation.held_out
    if validation.scheduler.progress.pressed or not _has_spikes(ranking.winner, held_out):
        return ranking
    validation = replace(validation, held_out=leave_out_outliers(held_out))
    ranking = _rank_again(ranking, validation, candidates)
    winner = ranking.winner
    path = _add_student(winner.path or candidates.list_paths(held_out.records, _find_input_delay(winner))[0])
    validation.fit([FitJob(path, fold) for fold in range(FOLDS)])
    complete = [each for each in validation.score(path) if each.complete and np.isfinite(each.errors).all()]
    if not complete:
        return ranking
    best = min(complete, key=lambda each: compute_held_out_error(each.errors))
    try:
        gains = measure_densities(best, held_out) - measure_densities(winner, held_out)
    except RevarbError:  # a held-out run diverged
        return ranking
    return _add_candidate(ranking, best, gains)


def leave_out_outliers(held_out: HeldOut) -> HeldOut:
    """The same runs without the samples that look like outliers: none can be simulated, and one decides an error.

    Unchanged where nothing else of a block was measured.
    """
    trusted, blocks = mask_if_possible(held_out.records), held_out.blocks
    if not all(np.isfinite(trusted[each.record].y[each.rows]).any() for each in blocks):
        return held_out
    masked = hold_out(trusted, blocks, 0)
    late = [masked.late_runs[masked.late_numbers.index(number)] for number in held_out.late_numbers]
    return held_out._replace(runs=masked.runs, late_runs=tuple(late), scaling=Standardiser.from_records(trusted))


def _has_spikes(result: CandidateResult, held_out: HeldOut) -> bool:
    outputs = [held_out.records[each.record].y[each.rows] for each in _sort_by_fold(held_out)]
    return has_heavy_tails(_collect_errors(result, held_out), outputs)


def _rank_again(ranking: Ranking, validation: Validation, candidates: DefaultCandidates) -> Ranking:
    tried = dict.fromkeys(each.path for each in ranking.results if each.path is not None)
    linear = try_linear(candidates.list_linear_orders(validation.held_out), validation.held_out)
    results = [*linear, *(each for path in tried for each in validation.score(path))]
    return rank(results, validation.held_out, validation.failures)


def _find_input_delay(result: CandidateResult) -> int:
    return next(iter(result.folds.values())).order.input_delay


def _add_student(path: CandidatePath) -> CandidatePath:
    return replace(path, name=f"{path.name}, Student-t noise", spec=replace(path.spec, noise="student-t"))


def has_heavy_tails(
    errors: Sequence[Float64[np.ndarray, "_ Dy"]], outputs: Sequence[Float64[np.ndarray, "_ Dy"]]
) -> bool:
    """Whether held-out errors have spikes, block by block, where the measured outputs have them too.

    Slow errors, of a model that is wrong somewhere, are no reason for another noise, and neither are sudden ones where
    the output does nothing unusual.
    """
    marks = [one & other for one, other in zip(mark_outliers(errors), mark_outliers(outputs), strict=True)]
    measured = [np.isfinite(error) for error in errors]
    shares = np.concatenate(marks).sum(axis=0) / np.maximum(np.concatenate(measured).sum(axis=0), 1)
    return bool(np.any(shares > MIN_SHARE))


def _sort_by_fold(held_out: HeldOut) -> list[HeldOutBlock]:
    return sorted(held_out.blocks, key=lambda block: block.fold)


def _collect_errors(result: CandidateResult, held_out: HeldOut) -> list[np.ndarray]:
    # Of all measured samples, those that look like outliers included.
    return collect_cold_errors(dict(sorted(result.folds.items())), held_out, held_out.scaling)


def measure_densities(result: CandidateResult, held_out: HeldOut) -> Float64[np.ndarray, " B"]:
    """Mean log density of the measurements of every block under the calibrated distribution, raw units.

    Candidates with another noise have another scaling, so z-scores cannot be compared.
    """
    if result.path is None:
        std, _ = calibrate_linear(result.folds, held_out, held_out.scaling)
        densities = [log_density(error, std[None, :]) for error in _collect_errors(result, held_out)]
        return np.array([np.nanmean(each) for each in densities]) - np.mean(np.log(held_out.scaling.y_std))
    calibration = calibrate_candidate(result, held_out)
    runs = collect_run_errors(result.folds, held_out.records, held_out.blocks, calibration.latent_scale)
    return np.array([
        np.mean(log_density(
            run.error, calibration.factors[-1] * np.sqrt(run.variance + calibration.output_noise),
            calibration.degrees_of_freedom,
        )) - np.mean(np.log(result.folds[block.fold].scaling.y_std))
        for run, block in zip(runs, _sort_by_fold(held_out), strict=True)
    ])  # fmt: skip


def _add_candidate(ranking: Ranking, student: CandidateResult, gains: Float64[np.ndarray, " B"]) -> Ranking:
    choice, results = ranking.choice, (*ranking.results, student)
    gain, deviation = float(np.mean(gains)), float(np.std(gains, ddof=1) / np.sqrt(len(gains)))
    taken = gain > deviation
    # A table has one measure: where predictions decide, cold runs are not shown.
    error = compute_held_out_error(student.errors) if choice.scored_by == COLD_RUNS else None
    new = Candidate(student.name, error, None, len(student.errors), student.seconds, "taken" if taken else "")
    known = [replace(each, note="") if taken and each.note == "taken" else each for each in choice.candidates]
    count = len(ranking.results)  # candidates that failed have no result, and stay last
    choice = replace(choice, candidates=(*known[:count], new, *known[count:]))
    if not taken:
        return replace(ranking, results=results, choice=choice)
    sentence = (
        f"{student.name}: the errors on held-out blocks have heavy tails, as outliers make them, and this noise "
        f"raises their mean log likelihood by {gain:.2g} (standard error {deviation:.2g}) over {choice.taken}."
    )
    return Ranking(results, student.key, replace(choice, taken=student.name, sentence=sentence))
