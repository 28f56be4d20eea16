"""Calibration: noises and band widths from stretches of the training records that a fit has not seen.

The records are cut into stretches. Four more fits each miss some of them (their outputs are masked, the latent chain
continues) and simulate them: from the beginning of the record, and from a window just before the stretch. Why it is
done in this way, and what is promised: docs/design/decisions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, Window
from revarb.data.windows import input_windows
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
    SCALES,
    HeldOutRun,
    choose_latent_scale,
    choose_output_noise,
    median_width,
    select_steps,
)
from revarb.training.problem import Report, Task, initialise
from revarb.training.solve import max_steps, solve
from revarb.training.stretches import FOLDS, Stretch, mask_fold

MIN_STRETCHES = 4  # with a measured output, or there is no calibration


def calibrate(model: FittedRGP, task: Task, report: Report, journal: Journal) -> FittedRGP:
    """The model with a calibration from the task's held-out stretches; unchanged where there are none.

    A fold that cannot be fitted leaves the model uncalibrated, with a warning; so does Ctrl-C, which sets its status.
    """
    if model.status is Status.INTERRUPTED or not task.stretches:
        return model
    try:
        folds = [_fit_without_fold(fold, model, task, report, journal) for fold in range(FOLDS)]
        with capture_interrupts():  # short, and JAX compiles in it
            found = find_calibration(
                folds, task.records, task.stretches, least=float(model.trained.chain.last_layer.sigma2)
            )
    except RevarbError as error:
        warn_user(f"the bands are not calibrated: {error}")
        return model
    except KeyboardInterrupt:
        return replace(model, status=Status.INTERRUPTED)
    return replace(model, calibration=found)


def calibration_steps(task: Task) -> int:
    """The largest number of steps that the fits of a calibration take."""
    return FOLDS * max_steps(task.spec) if task.stretches else 0


def _fit_without_fold(fold: int, model: FittedRGP, task: Task, report: Report, journal: Journal) -> FittedRGP:
    before = (1 + fold) * max_steps(model.spec)
    masked = mask_fold(task.records, task.stretches, fold)
    prep = Preprocessor.from_records(masked, task.preprocessor.order)
    problem = initialise(task._replace(records=tuple(masked), preprocessor=prep), model.seed)
    found = solve(problem, "held out", lambda steps, text: report(before + steps, f"calibrating: {text}"), journal)
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return found


def find_calibration(
    folds: Sequence[FittedRGP], records: Sequence[Series], stretches: Sequence[Stretch], least: float
) -> Calibration:
    """The numbers: latent noise by the error, output noise by the likelihood of the median stretch, then the widths."""
    free = {scale: _free_runs(folds, records, stretches, scale) for scale in SCALES}
    _check_runs(free.values(), len(stretches))
    scale = choose_latent_scale(np.array([[held.rms for held in free[scale]] for scale in SCALES]))
    noise = choose_output_noise(free[scale], least)
    far = median_width(free[scale], noise)
    windowed = _window_runs(folds, records, stretches, scale)
    edges = tuple(sorted({folds[0].order.lags, max(stretch.end - stretch.begin for stretch in stretches)}))
    bands = [[select_steps(held, begin, end) for held in windowed] for begin, end in pairwise((0, *edges))]
    near = [median_width(band, noise) if any(len(held.error) for held in band) else far for band in bands]
    error = float(np.median([held.rms for held in free[scale]]))
    return Calibration(scale, noise, edges, (*near, far), len(free[scale]), error)


def _check_runs(runs: Iterable[Sequence[HeldOutRun]], stretches: int) -> None:
    for held in runs:
        if len(held) < MIN_STRETCHES:
            raise InputError(
                f"{len(held)} of {stretches} stretches of the training data have measured outputs, and it takes at "
                f"least {MIN_STRETCHES}; use a record with fewer gaps, or calibrate=False"
            )
        if not all(np.isfinite(each.error).all() and np.isfinite(each.variance).all() for each in held):
            raise ComputationError("a held-out run diverged; use another seed, or calibrate=False")


def _free_runs(
    folds: Sequence[FittedRGP], records: Sequence[Series], stretches: Sequence[Stretch], scale: float
) -> list[HeldOutRun]:
    # Every stretch as a part of a cold run from the beginning of its record, by the fold that has not seen it.
    longest = max(len(record) for record in records)
    held = []
    for fold, model in enumerate(folds):
        for number, record in enumerate(records):
            own = [stretch for stretch in stretches if (stretch.record, stretch.fold) == (number, fold)]
            if own:
                cold = make_cold_origin(model.preprocessor, model.trained.chain).state
                moments = _moments(model, cold, record.u, scale, longest, model.preprocessor.order.reach)
                y = model.scaling.outputs(record.y)
                held += [_held_out_run(y[stretch.rows()], moments, stretch.rows(), stretch.begin) for stretch in own]
    return [each for each in held if len(each.error)]


def _window_runs(
    folds: Sequence[FittedRGP], records: Sequence[Series], stretches: Sequence[Stretch], scale: float
) -> list[HeldOutRun]:
    # Every stretch simulated from what was measured just before it, if that is long enough.
    longest, before = max(stretch.end - stretch.begin for stretch in stretches), folds[0].skip
    held = []
    for stretch in (stretch for stretch in stretches if stretch.begin >= before):
        model, record = folds[stretch.fold], records[stretch.record]
        just_before = slice(stretch.begin - before, stretch.begin)
        window = Window(
            record.u[just_before], record.y[just_before], record.dt, record.input_names, record.output_names
        )
        start = resolve_start(window, model.preprocessor, model.trained.chain, ()).state
        moments = _moments(model, start, record.u[stretch.rows()], scale, longest, 0)
        y = model.scaling.outputs(record.y[stretch.rows()])
        held.append(_held_out_run(y, moments, slice(0, len(y)), 0))
    return [each for each in held if len(each.error)]


def _moments(
    model: FittedRGP, start: StartState, u: Float64[np.ndarray, "T Du"], scale: float, longest: int, reset_row: int
) -> Moments:
    # Filled up to one length, so that all records and stretches share one compiled run.
    z = model.scaling.inputs(u)
    filled = np.concatenate([start.past_u, z, np.zeros((longest - len(z), z.shape[1]))])
    quiet = replace_noises(model.trained.chain, scale, 0.0)  # the outputs' noise is added when it is chosen
    return run_moments(quiet, start, input_windows(filled, model.preprocessor.order), reset_row)


def _held_out_run(y: Float64[np.ndarray, "T Dy"], moments: Moments, rows: slice, begin: int) -> HeldOutRun:
    measured = ~np.isnan(y)
    steps = np.broadcast_to(begin + 1.0 + np.arange(len(y))[:, None], y.shape)
    mean, variance = np.asarray(moments.mean)[rows], np.asarray(moments.variance)[rows]
    return HeldOutRun((y - mean)[measured], variance[measured], steps[measured])
