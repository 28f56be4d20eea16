"""Fit of one configuration with its calibration, or of several seeds: what `RGP.fit` calls.

Several seeds are fitted in turn, in processes, on a cluster, or batched on an accelerator.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import jax

from revarb.data.quality import warn_about_quality
from revarb.data.series import Series, as_records
from revarb.errors import ComputationError, InputError, RevarbError, check_integer, check_seed, warn_user
from revarb.fitting.batched_fits import trace_batched
from revarb.fitting.calibrate import calibrate, count_calibration_steps
from revarb.fitting.lbfgs import Optimum
from revarb.fitting.networks import train_networks
from revarb.fitting.problem import Problem, Report, Task, initialise, prepare
from revarb.fitting.weight_path import build_model, count_steps, show_progress, solve
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.rgp import RGP
from revarb.models.status import Status
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.journal import Journal
from revarb.runtime.machine import collect_versions, count_devices
from revarb.runtime.numerics import with_numerics
from revarb.runtime.progress import progress_lines
from revarb.runtime.unfinished import Checkpoint, discard_journals, make_checkpoints
from revarb.runtime.workers import (
    TaskReport,
    call_task,
    check_jobs,
    count_workers,
    is_cluster_set,
    run_in_processes,
    run_in_turn,
    stop_on_interrupt,
)

Outcome = FittedRGP | RevarbError  # a member, or the error of its fit: the other members are kept


@with_numerics
def fit_rgp(spec: RGP, train: Series | Sequence[Series], seed: int, progress: bool, resume: bool) -> FittedRGP:
    """Train `spec` on one record or several; see `RGP.fit`."""
    seed, task = check_seed(seed), prepare(spec, as_records(train))
    warn_about_quality(as_records(train))
    [checkpoint] = _locate_checkpoints(task, [seed], resume)
    with show_progress("fitting", _count_all_steps(task), progress) as report:
        model = fit_task(task, seed, checkpoint, report)
    if model.status is not Status.INTERRUPTED:
        discard_journals([checkpoint])
    return model


@with_numerics
def fit_task(task: Task, seed: int, checkpoint: Checkpoint | None, report: Report) -> FittedRGP:
    """Fit the model of a task, and calibrate it if the task has blocks to hold out."""
    with Journal(checkpoint) as journal:
        model = calibrate(solve(initialise(task, seed), "fit", report, journal), task, report, journal)
        if model.status is Status.INTERRUPTED:
            journal.keep()
    return model


def _count_all_steps(task: Task) -> int:
    return count_steps(task.spec) + count_calibration_steps(task)


def _locate_checkpoints(task: Task, seeds: Sequence[int], resume: bool) -> list[Checkpoint | None]:
    # By a digest of configuration, seed, records and versions. Of records that are cut into blocks, the other rows have
    # an effect on the scaling only.
    data, scaling = hashlib.sha256(), vars(task.preprocessor.scaling).values()
    for values in (*scaling, *(values for record in task.records for values in (record.u, record.y))):
        data.update(f"{values.shape}".encode() + values.tobytes())
    fits = [json.dumps([task.spec.to_dict(), seed, data.hexdigest(), collect_versions()]) for seed in seeds]
    return make_checkpoints([hashlib.sha256(fit.encode()).hexdigest() for fit in fits], resume)


@with_numerics
def fit_restarts(
    spec: RGP,
    train: Series | Sequence[Series],
    seed: int,
    restarts: int,
    jobs: int | None,
    progress: bool,
    resume: bool,
) -> Ensemble:
    """Fit `spec` with the seeds seed, seed + 1, …; see `RGP.fit(restarts=…)`.

    Journals of finished members are kept until all members have finished: a resumed call replays them.
    """
    first = check_seed(seed)
    seeds = range(first, check_seed(first + check_integer("restarts", restarts, least=1) - 1) + 1)
    jobs, task = check_jobs(jobs), prepare(spec, as_records(train))
    warn_about_quality(as_records(train))
    checkpoints = _locate_checkpoints(task, seeds, resume)
    lines = progress_lines([f"seed {seed}" for seed in seeds], _count_all_steps(task), progress)
    with lines as update, capture_interrupts(raise_after=1) as pressed:
        outcomes = list(_fit_all(task, seeds, checkpoints, jobs, update, pressed))
    ensemble = _build_ensemble(outcomes, len(seeds), interrupted=bool(pressed))
    if len(outcomes) == len(seeds) and ensemble.status is not Status.INTERRUPTED:
        discard_journals(checkpoints)
    return ensemble


def _fit_all(
    task: Task,
    seeds: Sequence[int],
    checkpoints: Sequence[Checkpoint | None],
    jobs: int | None,
    report: TaskReport,
    pressed: Sequence[int],
) -> Iterator[Outcome]:
    tasks = [(task, seed, checkpoint) for seed, checkpoint in zip(seeds, checkpoints, strict=True)]
    if not is_cluster_set():
        if jax.default_backend() != "cpu" and count_devices() == 1:
            return iter(fit_batched(task, seeds, stop_on_interrupt(report, pressed)))
        if count_workers(jobs) == 1:
            return (member for _, member in run_in_turn(fit_task, tasks, report, pressed))
    if count_devices() > 1:
        raise InputError("a mesh cannot be shared with other processes; use jobs=1 and no cluster inside set_mesh")
    return (member for _, member in run_in_processes(fit_task, tasks, jobs, report, pressed, lost="restarts"))


def _build_ensemble(outcomes: Sequence[Outcome], wanted: int, interrupted: bool) -> Ensemble:
    members = [outcome for outcome in outcomes if isinstance(outcome, FittedRGP)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, RevarbError)]
    if not members and failures:
        raise failures[0]
    if not members and interrupted:
        raise KeyboardInterrupt  # before the first step of any member
    if not members:
        raise ComputationError("no fit was completed: the worker processes died (out of memory?); use fewer jobs")
    for failure in failures:
        warn_user(f"a restart was left out: {failure}")
    ensemble = Ensemble.from_members(members)
    if interrupted:
        return replace(ensemble, status=Status.INTERRUPTED)
    if len(outcomes) < wanted:
        warn_user(f"only {len(outcomes)} of {wanted} fits were completed: workers died (out of memory?)")
    return ensemble


def fit_batched(task: Task, seeds: Sequence[int], report: TaskReport) -> list[Outcome]:
    """Fit all members at once, as one program (batched_fits.py); without a journal."""

    def start(seed: int, report: Report) -> Problem:
        return train_networks(initialise(task, seed), report, Journal())

    def finish(number: int, optimum: Optimum) -> FittedRGP:
        return calibrate(build_model(problems[number], optimum), task, partial(report, number), Journal())

    problems = [call_task(start, (seed,), partial(report, number)) for number, seed in enumerate(seeds)]
    paths = trace_batched(problems, report)
    return [path if isinstance(path, RevarbError) else finish(number, path[-1][1]) for number, path in enumerate(paths)]
