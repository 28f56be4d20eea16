"""Calibration: noises and band widths from held-out stretches of the training records.

The records are cut into stretches. Four more fits each leave out some of them (their outputs are masked, the latent
chain continues) and simulate them: from the beginning of the record, and from a window just before the stretch. The
reasons, and what a calibration guarantees, are in docs/design/decisions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float64

from revarb.data.series import Series, Window
from revarb.data.windows import input_windows_after
from revarb.errors import ComputationError, InputError, RevarbError, warn_user
from revarb.models.calibration import Calibration, replace_noises
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.journal import Journal
from revarb.optim.status import Status
from revarb.runtime.interrupts import capture_interrupts
from revarb.simulation.chain import StartState
from revarb.simulation.moments import Moments, run_moments
from revarb.simulation.starts import make_cold_origin, resolve_start
from revarb.training.calibration_rule import (
    BY_MEDIAN,
    HEAVY,
    SCALES,
    CalibrationRule,
    HeldOutRun,
    select_steps,
)
from revarb.training.problem import (
    Report,
    Task,
    count_enough_inducing,
    initialise,
    make_preprocessor,
    mask_if_possible,
)
from revarb.training.solve import count_steps, solve
from revarb.training.stretches import FOLDS, Stretch, mask_fold
from revarb.training.yardsticks import measure_linear, measure_mean

MIN_STRETCHES = 4  # with measured outputs; a median of fewer is not reliable


def calibrate(model: FittedRGP, task: Task, report: Report, journal: Journal) -> FittedRGP:
    """Add a calibration from the task's held-out stretches; without stretches the model is returned unchanged.

    If a fold cannot be fitted, the model stays uncalibrated, with a warning; after Ctrl-C too, with its status set.
    """
    if model.status is Status.INTERRUPTED or not task.stretches:
        return model
    try:
        folds = [_fit_without_fold(fold, model, task, report, journal) for fold in range(FOLDS)]
        with capture_interrupts():  # JAX compiles here
            calibration = find_calibration(
                folds, task.records, task.stretches, least=float(model.trained.chain.last_layer.sigma2)
            )
            calibration = _add_yardsticks(calibration, task)
    except RevarbError as error:
        warn_user(f"the bands are not calibrated: {error}")
        return model
    except KeyboardInterrupt:
        return replace(model, status=Status.INTERRUPTED)
    return replace(model, calibration=calibration)


def _add_yardsticks(calibration: Calibration, task: Task) -> Calibration:
    # In units of the outputs without outliers, as the error of the model is.
    records = task.records if task.spec.noise == "gaussian" else mask_if_possible(task.records)
    errors = measure_linear(records, task.stretches, task.preprocessor.order)
    linear = np.inf if errors is None else float(np.nanmedian(errors))
    return replace(
        calibration,
        linear_error=linear if np.isfinite(linear) else None,
        mean_error=float(np.nanmedian(measure_mean(records, task.stretches))),
    )


def count_calibration_steps(task: Task) -> int:
    """Count the steps of all fits of a calibration, at most."""
    return FOLDS * count_steps(task.spec) if task.stretches else 0


def _fit_without_fold(fold: int, model: FittedRGP, task: Task, report: Report, journal: Journal) -> FittedRGP:
    steps_before = (1 + fold) * count_steps(model.spec)
    masked = mask_fold(task.records, task.stretches, fold)
    prep = make_preprocessor(task.spec, masked)
    spec = replace(task.spec, inducing=min(task.spec.inducing, count_enough_inducing(task.records)))
    problem = initialise(task._replace(spec=spec, records=tuple(masked), preprocessor=prep), model.seed)
    fitted = solve(
        problem, "held out", lambda steps, text: report(steps_before + steps, f"calibrating: {text}"), journal
    )
    if fitted.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return fitted


def find_calibration(
    folds: Sequence[FittedRGP],
    records: Sequence[Series],
    stretches: Sequence[Stretch],
    least: float,
    rule: CalibrationRule = BY_MEDIAN,
) -> Calibration:
    """Choose the noises by a rule, then the widths of the bands, on held-out runs of the folds.

    `least` is the smallest variance of the output noise. Models with Student-t noise have a rule of their own.
    """
    free_runs = _drop_diverged({scale: measure_held_out_runs(folds, records, stretches, scale) for scale in SCALES})
    _check_runs(free_runs, len(stretches))
    rule = HEAVY if folds[0].spec.noise == "student-t" else rule
    noises = rule.choose_noises(free_runs, least)
    scale = noises.latent_scale
    noises, far = rule.find_band(free_runs[scale], noises)
    window_runs = _run_from_windows(folds, records, stretches, scale)
    edges = tuple(sorted({folds[0].order.lags, max(stretch.end - stretch.begin for stretch in stretches)}))
    bands = [[select_steps(run, begin, end) for run in window_runs] for begin, end in pairwise((0, *edges))]
    near = [rule.find_width(band, noises) if any(len(run.error) for run in band) else far for band in bands]
    error = float(np.median([run.rms for run in free_runs[scale]]))
    return Calibration(
        scale, noises.output, edges, (*near, far), len(free_runs[scale]), error, degrees_of_freedom=noises.degrees
    )


def _drop_diverged(runs: Mapping[float, Sequence[HeldOutRun]]) -> dict[float, list[HeldOutRun]]:
    # The same stretches for every scale. A band that has become wider than the signal says nothing about its width.
    sound = [not any(run.diverged for run in by_scale) for by_scale in zip(*runs.values(), strict=True)]
    if 2 * sum(sound) < len(sound):
        raise ComputationError("most of the held-out runs diverged; use another seed, or calibrate=False")
    return {scale: [run for run, kept in zip(all_runs, sound, strict=True) if kept] for scale, all_runs in runs.items()}


def _check_runs(runs: Mapping[float, Sequence[HeldOutRun]], stretches: int) -> None:
    left = min(len(each) for each in runs.values())
    if left < MIN_STRETCHES:
        raise InputError(
            f"{left} of {stretches} stretches of the training data have measured outputs and a run that does not "
            f"diverge, and it takes at least {MIN_STRETCHES}; use a record with fewer gaps, or calibrate=False"
        )


def measure_held_out_runs(
    folds: Sequence[FittedRGP], records: Sequence[Series], stretches: Sequence[Stretch], scale: float
) -> list[HeldOutRun]:
    """Every stretch as a part of a cold run from the beginning of its record, by the fold that left it out.

    The variances are without output noise. Stretches without measured outputs are left out.
    """
    runs = []
    for fold, model in enumerate(folds):
        for number, record in enumerate(records):
            selected = [stretch for stretch in stretches if (stretch.record, stretch.fold) == (number, fold)]
            if selected:
                cold = make_cold_origin(model.preprocessor, model.trained.chain).state
                moments = _run_scaled(model, cold, record.u, scale, model.preprocessor.order.reach)
                y = model.scaling.outputs(record.y)
                runs += [_collect_errors(y[stretch.rows], moments, stretch.rows, stretch.begin) for stretch in selected]
    return [run for run in runs if len(run.error)]


def _run_from_windows(
    folds: Sequence[FittedRGP], records: Sequence[Series], stretches: Sequence[Stretch], scale: float
) -> list[HeldOutRun]:
    # Every stretch simulated from a window of `skip` samples just before it, if there are that many.
    samples, runs = folds[0].skip, []
    for stretch in (stretch for stretch in stretches if stretch.begin >= samples):
        model, record = folds[stretch.fold], records[stretch.record]
        just_before = slice(stretch.begin - samples, stretch.begin)
        window = Window(
            record.u[just_before], record.y[just_before], record.dt, record.input_names, record.output_names
        )
        start = resolve_start(window, model.preprocessor, model.trained.chain, ()).state
        moments = _run_scaled(model, start, record.u[stretch.rows], scale, 0)
        y = model.scaling.outputs(record.y[stretch.rows])
        runs.append(_collect_errors(y, moments, slice(0, len(y)), 0))
    return [run for run in runs if len(run.error)]


def _run_scaled(
    model: FittedRGP, start: StartState, u: Float64[np.ndarray, "T Du"], scale: float, reset_row: int
) -> Moments:
    u_bar = input_windows_after(start.past_u, model.scaling.inputs(u), model.preprocessor.order)
    chain = replace_noises(model.trained.chain, scale, 0.0)  # the output noise is added when it is chosen
    return run_moments(chain, start, u_bar, reset_row)


def _collect_errors(y: Float64[np.ndarray, "T Dy"], moments: Moments, rows: slice, begin: int) -> HeldOutRun:
    measured = ~np.isnan(y)
    steps = np.broadcast_to(begin + 1.0 + np.arange(len(y))[:, None], y.shape)
    mean, variance = np.asarray(moments.mean)[rows], np.asarray(moments.variance)[rows]
    return HeldOutRun((y - mean)[measured], variance[measured], steps[measured])
