"""Bands that mean what they say: noise and widths from stretches of the training records that a fit has not seen.

docs/decisions.md, "Calibration", says why it is done in this way, and what is promised. The records are cut into
stretches. A few more fits each miss some of them (their outputs are masked, the latent chain goes on), and simulate
them: from the beginning of their record, and from a window just before them.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.calibration import Calibration, with_noises
from revarb.errors import InputError
from revarb.fitted import FittedRGP
from revarb.frame import Frame
from revarb.interrupts import held_interrupts
from revarb.journal import Journal
from revarb.optimise import Status
from revarb.problem import Report, prepare, solved, steps_of
from revarb.rgp import RGP
from revarb.series import Series, Window
from revarb.simulate import Moments, Start, run_moments
from revarb.start import cold_origin, origin_of
from revarb.trajectory import half_width
from revarb.windows import input_windows

FOLDS = 4  # fits that miss a quarter of the stretches each
STRETCHES = 12
LEAST_ROWS = 100  # below, twelve stretches are too short to tell anything
SCALES = (0.0, 0.1, 0.3, 1.0)  # of the latent noise
SURE = 2.0  # standard errors by which less latent noise must lower the error of held-out stretches, to be taken
LEAST_STRETCHES = 4  # with a measured output, or there is no calibration
NOISES, MOST_NOISE = 200, 10.0  # how many variances of the outputs' noise are tried, up to ten times that of y
LEVEL = 0.95


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


class Stretch(NamedTuple):
    """The samples [begin, end) of a record, which one of the folds does not see."""

    record: int
    begin: int
    end: int
    fold: int

    def rows(self) -> slice:
        """Where it is in its record."""
        return slice(self.begin, self.end)


def stretches_of(records: Sequence[Series], frame: Frame) -> list[Stretch]:
    """About a dozen stretches of the same length, dealt out to the folds; none where there are too few rows.

    The first rows of a record stay: a run is still settling there.
    """
    firsts = [min(frame.skip, len(record) // 2) for record in records]
    counts = [len(record) - first for record, first in zip(records, firsts, strict=True)]
    if sum(counts) < LEAST_ROWS:
        return []
    length = sum(counts) / STRETCHES
    pieces = [
        (number, int(begin), int(end))
        for number, (record, first, count) in enumerate(zip(records, firsts, counts, strict=True))
        for begin, end in pairwise(np.linspace(first, len(record), max(1, round(count / length)) + 1).round())
    ]
    return [Stretch(*piece, position % FOLDS) for position, piece in enumerate(pieces)]


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


def _without(record: Series, stretches: Sequence[Stretch]) -> Series:
    y = record.y.copy()
    for stretch in stretches:
        y[stretch.rows()] = np.nan
    return replace(record, y=y)


class Held(NamedTuple):
    """A simulated stretch, z-scored: its errors where it was measured, their variance without the outputs' noise."""

    error: Float64[np.ndarray, " V"]
    variance: Float64[np.ndarray, " V"]
    steps: Float64[np.ndarray, " V"]  # since the start of the run

    @property
    def rms(self) -> float:
        """Root mean square error."""
        return float(np.sqrt(np.mean(self.error**2)))


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


def latent_scale(errors: Float64[np.ndarray, "C S"]) -> float:
    """The scale of the latent noise, from the stretches' errors under each of `SCALES`: 1 unless less is better."""
    logs = np.log(np.maximum(errors, 1e-12))
    gains = logs[-1] - logs
    sure = gains.mean(1) > SURE * gains.std(1, ddof=1) / np.sqrt(gains.shape[1])
    return SCALES[int(np.argmax(np.where(sure, gains.mean(1), 0.0)))] if sure.any() else SCALES[-1]


def output_noise(held: Sequence[Held], least: float) -> float:
    """The variance under which the median stretch is likeliest: one stretch unlike all others decides nothing."""
    noises = np.geomspace(least, max(MOST_NOISE, 10.0 * least), NOISES)
    losses = [[_loss(each, noise) for each in held] for noise in noises]
    return float(noises[int(np.argmin(np.median(losses, axis=1)))])


def _loss(held: Held, noise: float) -> float:
    variance = held.variance + noise
    return float(np.mean(0.5 * np.log(2.0 * np.pi * variance) + 0.5 * held.error**2 / variance))


def median_width(held: Sequence[Held], noise: float) -> float:
    """By how much the 95 % band of the median stretch must be wider. Never narrower: a dozen stretches are few."""
    return max(1.0, float(np.median([width_factor(each, noise) for each in held if len(each.error)])))


def width_factor(held: Held, noise: float) -> float:
    """By how much a stretch's 95 % band must be wider, or may be narrower, to be conformal.

    Of n errors in units of their standard deviation, the one of rank ⌈0.95 (n + 1)⌉ bounds the next one with that
    probability, if all are exchangeable; of fewer than 19 the largest does so with probability n / (n + 1).
    """
    ratios = np.sort(np.abs(held.error) / np.sqrt(held.variance + noise))
    count = len(ratios)
    rank = min(int(np.ceil(LEVEL * (count + 1))), count)
    return float(ratios[rank - 1] / half_width(min(LEVEL, rank / (count + 1))))


def _within(held: Held, begin: int, end: int) -> Held:
    # Its steps begin + 1 … end.
    inside = (held.steps > begin) & (held.steps <= end)
    return Held(*(part[inside] for part in held))


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
