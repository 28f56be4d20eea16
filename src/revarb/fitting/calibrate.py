"""Calibration: noises and band widths from held-out blocks of the training records.

Four more fits each leave out some of the blocks (their outputs are masked, the latent chain continues) and simulate
them: from the beginning of the record, and from a window just before the block. The reasons, and what a calibration
guarantees, are in docs/design.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.data.scaling import Standardiser
from revarb.data.series import Series, Window
from revarb.data.windows import input_windows_after
from revarb.errors import ComputationError, InputError, RevarbError, warn_user
from revarb.fitting.calibration_rule import (
    BY_MEDIAN,
    HEAVY,
    SCALES,
    CalibrationRule,
    RunErrors,
    select_measured,
    select_steps,
)
from revarb.fitting.held_out import (
    FOLDS,
    LAST,
    HeldOut,
    HeldOutBlock,
    compute_held_out_error,
    hold_out,
    mask_fold,
    measure_block_errors,
)
from revarb.fitting.problem import Report, Task, count_enough_inducing, initialise, make_preprocessor, mask_if_possible
from revarb.fitting.reference_errors import measure_linear, measure_mean
from revarb.fitting.weight_path import count_steps, solve
from revarb.models.calibration import Calibration, replace_noises
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.recipe import Status
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.journal import Journal
from revarb.simulation.chain import StartState
from revarb.simulation.filtering import filter_states
from revarb.simulation.moments import Moments, run_moments
from revarb.simulation.starts import infer_state, make_standard_start

MIN_BLOCKS = 4  # with measured outputs; a median of fewer is not reliable


def calibrate(model: FittedRGP, task: Task, report: Report, journal: Journal) -> FittedRGP:
    """Add a calibration from the task's held-out blocks; without blocks the model is returned unchanged.

    If a fold cannot be fitted, the model stays uncalibrated, with a warning; after Ctrl-C too, with its status set.
    """
    if model.status is Status.INTERRUPTED or not task.blocks:
        return model
    try:
        folds = {fold: _fit_without_fold(fold, model, task, report, journal) for fold in range(FOLDS)}
        with capture_interrupts():  # JAX compiles here
            calibration = _calibrate_on(folds, task, least=float(model.trained.chain.last_layer.sigma2))
    except RevarbError as error:
        warn_user(f"the bands are not calibrated: {error}")
        return model
    except KeyboardInterrupt:
        return replace(model, status=Status.INTERRUPTED)
    return replace(model, calibration=calibration)


def _calibrate_on(folds: Mapping[int, FittedRGP], task: Task, least: float) -> Calibration:
    # With Student-t noise, samples that look like outliers have no effect on the errors, nor on their units.
    records = task.records if task.spec.noise == "gaussian" else mask_if_possible(task.records)
    held_out = hold_out(records, task.blocks, task.preprocessor.skip)
    errors = measure_block_errors(folds, held_out)
    calibration = find_calibration(folds, task.records, task.blocks, errors, least).calibration
    return replace(
        calibration,
        linear_error=measure_linear(held_out, task.preprocessor.order),
        mean_error=measure_mean(held_out),
    )


def count_calibration_steps(task: Task) -> int:
    """Count the steps of all fits of a calibration, at most."""
    return FOLDS * count_steps(task.spec) if task.blocks else 0


def _fit_without_fold(fold: int, model: FittedRGP, task: Task, report: Report, journal: Journal) -> FittedRGP:
    steps_before = (1 + fold) * count_steps(model.spec)
    masked = mask_fold(task.records, task.blocks, fold)
    prep = make_preprocessor(task.spec, masked)
    spec = replace(task.spec, inducing=min(task.spec.inducing, count_enough_inducing(task.records)))
    problem = initialise(task._replace(spec=spec, records=tuple(masked), preprocessor=prep), model.seed)
    fitted = solve(
        problem, "held out", lambda steps, text: report(steps_before + steps, f"calibrating: {text}"), journal
    )
    if fitted.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return fitted


class HeldOutBands(NamedTuple):
    """Errors of held-out runs by the number of their block, with the variance of the calibrated band."""

    cold: dict[int, RunErrors]  # from the beginnings of the records
    ahead: dict[int, RunErrors]  # from windows just before the blocks


class Calibrated(NamedTuple):
    """A calibration, and the runs behind it with its bands."""

    calibration: Calibration
    bands: HeldOutBands


def find_calibration(
    folds: Mapping[int, FittedRGP],
    records: Sequence[Series],
    blocks: Sequence[HeldOutBlock],
    errors: Float64[np.ndarray, " B"],
    least: float,
    rule: CalibrationRule = BY_MEDIAN,
) -> Calibrated:
    """Choose the noises by a rule, then the widths of the bands, on held-out runs of the folds.

    `errors` are those of `measure_block_errors`, and `least` is the smallest variance of the output noise. Models with
    Student-t noise have a rule of their own. Blocks whose run diverges count neither for the bands nor for the error.
    """
    by_scale = _drop_diverged({scale: collect_run_errors(folds, records, blocks, scale) for scale in SCALES})
    _check_runs(by_scale, len(blocks))
    free_runs = {scale: list(runs.values()) for scale, runs in by_scale.items()}
    [first, *_] = folds.values()
    rule = HEAVY if first.spec.noise == "student-t" else rule
    noises = rule.choose_noises(free_runs, least)
    scale = noises.latent_scale
    noises, far = rule.find_band(free_runs[scale], noises)
    window_runs = _run_from_windows(folds, records, blocks, scale)
    edges = tuple(sorted({first.order.lags, max(block.end - block.begin for block in blocks)}))
    bands = [[select_steps(run, begin, end) for run in window_runs.values()] for begin, end in pairwise((0, *edges))]
    near = [rule.find_width(band, noises) if any(len(run.error) for run in band) else far for band in bands]
    error = compute_held_out_error(errors[np.isfinite(errors)])
    calibration = Calibration(
        scale, noises.output, edges, (*near, far), len(free_runs[scale]), error, degrees_of_freedom=noises.degrees
    )
    cold, ahead = (
        _widen(runs, calibration, is_cold) for runs, is_cold in ((by_scale[scale], True), (window_runs, False))
    )
    return Calibrated(calibration, HeldOutBands(cold, ahead))


def add_last_runs(known: Calibrated, model: FittedRGP, held_out: HeldOut, scaling: Standardiser) -> Calibrated:
    """Add the runs over the last third of every record, by the model that was fitted without them.

    In units of the `scaling` of all records: that of the first two thirds can be another one.
    """
    (calibration, (cold, ahead)), blocks = known, held_out.last_blocks
    last = collect_run_errors({LAST: model}, held_out.records, blocks, calibration.latent_scale, scaling)
    sound = {len(held_out.blocks) + number: run for number, run in last.items() if not run.diverged}
    return known._replace(bands=HeldOutBands({**cold, **_widen(sound, calibration, cold=True)}, ahead))


def _widen(runs: Mapping[int, RunErrors], calibration: Calibration, cold: bool) -> dict[int, RunErrors]:
    # With the variance of the band that a user sees.
    return {
        block: run._replace(
            variance=calibration.width_factors(np.full_like(run.steps, np.inf) if cold else run.steps) ** 2
            * (run.variance + calibration.output_noise)
        )
        for block, run in runs.items()
    }


RunsByBlock = Mapping[int, RunErrors]


def _drop_diverged(runs: Mapping[float, RunsByBlock]) -> dict[float, dict[int, RunErrors]]:
    # The same blocks for every scale. A band that has become wider than the signal says nothing about its width.
    [first, *_] = runs.values()
    sound = [block for block in first if not any(by_block[block].diverged for by_block in runs.values())]
    if 2 * len(sound) < len(first):
        raise ComputationError("most of the held-out runs diverged; use another seed, or calibrate=False")
    return {scale: {block: by_block[block] for block in sound} for scale, by_block in runs.items()}


def _check_runs(runs: Mapping[float, RunsByBlock], blocks: int) -> None:
    left = min(len(each) for each in runs.values())
    if left < MIN_BLOCKS:
        raise InputError(
            f"{left} of {blocks} blocks of the training data have measured outputs and a run that does not "
            f"diverge, and it takes at least {MIN_BLOCKS}; use a record with fewer gaps, or calibrate=False"
        )


def collect_run_errors(
    folds: Mapping[int, FittedRGP],
    records: Sequence[Series],
    blocks: Sequence[HeldOutBlock],
    scale: float,
    scaling: Standardiser | None = None,
) -> dict[int, RunErrors]:
    """Every block, by its number, as a part of a cold run from the beginning of its record by the fold without it.

    The blocks of the first fold come first. The variances are without output noise. Blocks without measured outputs are
    left out. Units are those of each fold, or of `scaling`.
    """
    runs = {}
    for fold, model in sorted(folds.items()):
        for number, record in enumerate(records):
            selected = [block for block in blocks if (block.record, block.fold) == (number, fold)]
            if selected:
                unit = 1.0 if scaling is None else model.scaling.y_std / scaling.y_std
                mean, variance = _run_restarted(model, record.u, scale)
                y, moments = unit * model.scaling.outputs(record.y), Moments(unit * mean, unit**2 * variance)
                for block in selected:
                    runs[blocks.index(block)] = _compare(y[block.rows], moments, block.rows, block.begin)
    return {block: run for block, run in runs.items() if len(run.error)}


def cut_window(records: Sequence[Series], block: HeldOutBlock, samples: int) -> Window | None:
    """The window of so many samples just before a block; None where there are fewer."""
    if block.begin < samples:
        return None
    record, before = records[block.record], slice(block.begin - samples, block.begin)
    return Window(record.u[before], record.y[before], record.dt, record.input_names, record.output_names)


def _run_from_windows(
    folds: Mapping[int, FittedRGP], records: Sequence[Series], blocks: Sequence[HeldOutBlock], scale: float
) -> dict[int, RunErrors]:
    # Every block simulated from a window of `skip` samples just before it, if there are that many.
    [first, *_] = folds.values()
    runs = {}
    for number, block in enumerate(blocks):
        if (window := cut_window(records, block, first.preprocessor.skip)) is None:
            continue
        model, record = folds[block.fold], records[block.record]
        prep, chain = model.preprocessor, model.trained.chain
        start = infer_state(window, prep, chain, make_standard_start(prep, chain), filter_states)
        moments = _run_scaled(model, start, record.u[block.rows], scale)
        y = model.scaling.outputs(record.y[block.rows])
        runs[number] = _compare(y, moments, slice(0, len(y)), 0)
    return {block: run for block, run in runs.items() if len(run.error)}


def _run_restarted(model: FittedRGP, u: Float64[np.ndarray, "T Du"], scale: float) -> Moments:
    # Over a record from its beginning, and again from where the window of inputs is full: what came before has no
    # effect on the blocks.
    start, reach = make_standard_start(model.preprocessor, model.trained.chain), model.order.reach
    later = replace(start, past_u=model.scaling.inputs(u[:reach]))
    pieces = [(start, u[:reach]), (later, u[reach:])] if reach else [(start, u)]
    parts = [_run_scaled(model, *piece, scale) for piece in pieces]
    return Moments(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _run_scaled(model: FittedRGP, start: StartState, u: Float64[np.ndarray, "T Du"], scale: float) -> Moments:
    u_bar = input_windows_after(start.past_u, model.scaling.inputs(u), model.preprocessor.order)
    chain = replace_noises(model.trained.chain, scale, 0.0)  # the output noise is added when it is chosen
    return run_moments(chain, start, u_bar)


def _compare(y: Float64[np.ndarray, "T Dy"], moments: Moments, rows: slice, begin: int) -> RunErrors:
    return select_measured(y, y - np.asarray(moments.mean)[rows], np.asarray(moments.variance)[rows], begin)
