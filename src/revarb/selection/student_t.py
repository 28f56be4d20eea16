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
from revarb.models.choice import COLD_RUNS
from revarb.selection.candidates import CandidatePath, DefaultCandidates
from revarb.selection.final_fit import calibrate_candidate
from revarb.selection.linear import calibrate_linear, collect_cold_errors, try_linear
from revarb.selection.ranking import Ranking, rank, select_members
from revarb.selection.schedule import FitJob
from revarb.selection.search import Budget
from revarb.selection.validation import CandidateResult, Validation

MIN_SHARE = 0.015  # of the samples of an output that must look like outliers; fast systems have a few that do


def try_student(ranking: Ranking, validation: Validation, candidates: DefaultCandidates, budget: Budget) -> Ranking:
    """The ranking, or where the errors of the best candidate have heavy tails, another one.

    Then the candidates are compared again without the samples that look like outliers, and the best of them is tried
    with Student-t noise. If that raises the likelihood of the held-out blocks, all members have this noise.
    """
    held_out = validation.held_out
    members, finished = budget.members, bool(validation.scheduler.progress.pressed) or budget.is_spent
    if finished or not _has_spikes(ranking.best, held_out):
        return ranking
    validation = replace(validation, held_out=leave_out_outliers(held_out))
    ranking = _rank_again(ranking, validation, candidates, members)
    if ranking.scored_by != COLD_RUNS:
        return ranking
    best = ranking.best
    [first, *_] = best.folds.values()
    path = _add_student(best.path or candidates.list_paths(held_out.records, first.order.input_delay)[0])
    validation.fit([FitJob(path, fold) for fold in range(FOLDS)])
    complete = [each for each in validation.score(path) if each.complete and np.isfinite(each.errors).all()]
    complete = sorted(complete, key=lambda each: compute_held_out_error(each.errors))
    if not complete:
        return ranking
    try:
        gains = measure_densities(complete[0], held_out) - measure_densities(best, held_out)
    except RevarbError:  # a held-out run diverged
        return ranking
    return _add_results(ranking, complete, gains, validation.held_out, members)


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


def _rank_again(ranking: Ranking, validation: Validation, candidates: DefaultCandidates, members: int) -> Ranking:
    tried = dict.fromkeys(each.path for each in ranking.results if each.path is not None)
    linear = try_linear(candidates.list_linear_orders(validation.held_out), validation.held_out)
    results = [*linear, *(each for path in tried for each in validation.score(path))]
    again = rank(results, validation.held_out, validation.failures, members)
    return replace(again, remarks=ranking.remarks)


def _add_student(path: CandidatePath) -> CandidatePath:
    spec, trial = (None if each is None else replace(each, noise="student-t") for each in (path.spec, path.trial))
    return CandidatePath(spec, f"{path.name}, Student-t noise", trial)


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
    calibration, _ = calibrate_candidate(result, held_out)
    runs = collect_run_errors(result.folds, held_out.records, held_out.blocks, calibration.latent_scale)
    return np.array([
        np.mean(log_density(
            run.error, calibration.factors[-1] * np.sqrt(run.variance + calibration.output_noise),
            calibration.degrees_of_freedom,
        )) - np.mean(np.log(result.folds[block.fold].scaling.y_std))
        for run, block in zip(runs.values(), _sort_by_fold(held_out), strict=True)
    ])  # fmt: skip


def _add_results(
    ranking: Ranking,
    student: Sequence[CandidateResult],
    gains: Float64[np.ndarray, " B"],
    held_out: HeldOut,
    members: int,
) -> Ranking:
    gain, deviation = float(np.mean(gains)), float(np.std(gains, ddof=1) / np.sqrt(len(gains)))
    results = (*ranking.results, *student)
    if gain <= deviation:
        return replace(ranking, results=results, compared=(*ranking.compared, *student))
    remark = (
        "The errors on held-out blocks have heavy tails, as outliers make them, and Student-t noise raises their mean "
        f"log likelihood by {gain:.2g} (standard error {deviation:.2g}) over {ranking.best.name}."
    )
    linear = tuple(each for each in ranking.compared if each.path is None)  # for the table
    remarks = (*ranking.remarks, remark)
    ranking = replace(ranking, results=results, compared=tuple(student), remarks=remarks)
    ranking = select_members(ranking, held_out, members)
    return replace(ranking, compared=(*student, *linear))
