"""Bands that mean what they say: noise and widths from stretches of the training records that a fit has not seen.

docs/decisions.md, "Calibration", says why it is done in this way, and what is promised. The records are cut into
stretches. A few more fits each miss some of them (their outputs are masked, the latent chain goes on), and simulate
them: from the beginning of their record, and from a window just before them.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from jaxtyping import Float64

from revarb.config.rgp import RGP
from revarb.data.preprocessor import Frame
from revarb.data.series import Series, Window
from revarb.data.windows import input_windows
from revarb.errors import InputError
from revarb.models.calibration import Calibration, with_noises
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.journal import Journal
from revarb.optim.status import Status
from revarb.runtime.interrupts import held_interrupts
from revarb.simulation.chain import Start
from revarb.simulation.moments import Moments, run_moments
from revarb.simulation.starts import cold_origin, origin_of
from revarb.training.calibration_rule import SCALES, Held, _within, latent_scale, median_width, output_noise
from revarb.training.problem import prepare
from revarb.training.solve import Report, solved, steps_of
from revarb.training.stretches import FOLDS, Stretch, _without, stretches_of

LEAST_STRETCHES = 4  # with a measured output, or there is no calibration


def calibrated(model: FittedRGP, records: Sequence[Series], report: Report, journal: Journal) -> FittedRGP:
    """The model with a calibration, where its configuration asks for one and its records are long enough.

    A fold that cannot be fitted leaves it without one, with a warning; so does Ctrl-C, and then its status says so.
    """
    stretches = stretches_of(records, model.frame) if model.spec.calibrate else []
    if model.status is Status.INTERRUPTED or not stretches:
        return model
    try:
        folds = [_missing(fold, model, records, stretches, report, journal) for fold in range(FOLDS)]
        with held_interrupts():  # it is short, and compiles
            found = calibration_of(folds, records, stretches, least=float(model.trained.chain.last.sigma2))
    except InputError as error:
        warnings.warn(f"the bands are not calibrated: {error}", stacklevel=6)
        return model
    except KeyboardInterrupt:
        return replace(model, status=Status.INTERRUPTED)
    return replace(model, calibration=found)


def calibration_steps(spec: RGP, records: Sequence[Series]) -> int:
    """The most steps that the fits of a calibration can take."""
    frame = Frame.of(records, spec.lags_for(records[0].u.shape[1]))
    return FOLDS * steps_of(spec) if spec.calibrate and stretches_of(records, frame) else 0


def _missing(
    fold: int,
    model: FittedRGP,
    records: Sequence[Series],
    stretches: Sequence[Stretch],
    report: Report,
    journal: Journal,
) -> FittedRGP:
    # The same fit without this fold's stretches.
    before = (1 + fold) * steps_of(model.spec)
    masked = [_without(record, [s for s in stretches if (s.record, s.fold) == (k, fold)]) for k, record in
              enumerate(records)]  # fmt: skip
    problem = prepare(model.spec, masked, model.seed)
    found = solved(problem, "held out", lambda steps, text: report(before + steps, f"calibrating: {text}"), journal)
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return found


def calibration_of(
    folds: Sequence[FittedRGP], records: Sequence[Series], stretches: Sequence[Stretch], least: float
) -> Calibration:
    """The numbers: latent noise by the error, output noise by the likelihood of the median stretch, then the widths."""
    free = {scale: _free_runs(folds, records, stretches, scale) for scale in SCALES}
    _check(free.values(), len(stretches))
    scale = latent_scale(np.array([[held.rms for held in free[scale]] for scale in SCALES]))
    noise = output_noise(free[scale], least)
    far = median_width(free[scale], noise)
    windowed = _window_runs(folds, records, stretches, scale)
    edges = tuple(sorted({folds[0].lags.states, max(stretch.end - stretch.begin for stretch in stretches)}))
    bands = [[_within(held, begin, end) for held in windowed] for begin, end in pairwise((0, *edges))]
    near = [median_width(band, noise) if any(len(held.error) for held in band) else far for band in bands]
    error = float(np.median([held.rms for held in free[scale]]))
    return Calibration(scale, noise, edges, (*near, far), len(free[scale]), error)


def _check(runs: Iterable[Sequence[Held]], stretches: int) -> None:
    for held in runs:
        if len(held) < LEAST_STRETCHES:
            raise InputError(
                f"{len(held)} of {stretches} stretches of the training data have measured outputs, and it takes at "
                f"least {LEAST_STRETCHES}; use a record with fewer gaps, or calibrate=False"
            )
        if not all(np.isfinite(each.error).all() and np.isfinite(each.variance).all() for each in held):
            raise InputError("a held-out stretch ran away to infinity; use another seed, or calibrate=False")


def _free_runs(
    folds: Sequence[FittedRGP], records: Sequence[Series], stretches: Sequence[Stretch], scale: float
) -> list[Held]:
    # Every stretch as a part of a cold run from the beginning of its record, by the fold that has not seen it.
    longest = max(len(record) for record in records)
    held = []
    for fold, model in enumerate(folds):
        for number, record in enumerate(records):
            own = [stretch for stretch in stretches if (stretch.record, stretch.fold) == (number, fold)]
            if own:
                cold = cold_origin(model.frame, model.trained.chain).state
                moments = _moments(model, cold, record.u, scale, longest, model.frame.lags.reach)
                y = model.scaling.outputs(record.y)
                held += [_held(y[stretch.rows()], moments, stretch.rows(), stretch.begin) for stretch in own]
    return [each for each in held if len(each.error)]


def _window_runs(
    folds: Sequence[FittedRGP], records: Sequence[Series], stretches: Sequence[Stretch], scale: float
) -> list[Held]:
    # Every stretch simulated from what was measured just before it, if that is long enough.
    longest, before = max(stretch.end - stretch.begin for stretch in stretches), folds[0].skip
    held = []
    for stretch in (stretch for stretch in stretches if stretch.begin >= before):
        model, record = folds[stretch.fold], records[stretch.record]
        seen = slice(stretch.begin - before, stretch.begin)
        window = Window(record.u[seen], record.y[seen], record.dt, record.input_names, record.output_names)
        start = origin_of(window, model.frame, model.trained.chain, ()).state
        moments = _moments(model, start, record.u[stretch.rows()], scale, longest, 0)
        y = model.scaling.outputs(record.y[stretch.rows()])
        held.append(_held(y, moments, slice(0, len(y)), 0))
    return [each for each in held if len(each.error)]


def _moments(
    model: FittedRGP, start: Start, u: Float64[np.ndarray, "T Du"], scale: float, longest: int, fresh: int
) -> Moments:
    # Filled up to one length, so that all records and stretches share one compiled run.
    z = model.scaling.inputs(u)
    filled = np.concatenate([start.past_u, z, np.zeros((longest - len(z), z.shape[1]))])
    quiet = with_noises(model.trained.chain, scale, 0.0)  # the outputs' noise is added when it is chosen
    return run_moments(quiet, start, input_windows(filled, model.frame.lags), fresh)


def _held(y: Float64[np.ndarray, "T Dy"], moments: Moments, rows: slice, begin: int) -> Held:
    seen = ~np.isnan(y)
    steps = np.broadcast_to(begin + 1.0 + np.arange(len(y))[:, None], y.shape)
    mean, variance = np.asarray(moments.mean)[rows], np.asarray(moments.variance)[rows]
    return Held((y - mean)[seen], variance[seen], steps[seen])
