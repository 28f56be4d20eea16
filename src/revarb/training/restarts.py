"""Several fits of one task with different seeds: in turn, in processes, on a cluster, or batched on an accelerator."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import jax
from joblib import effective_n_jobs

from revarb.config.rgp import RGP
from revarb.data.quality import warn_about_quality
from revarb.data.series import Series, as_records
from revarb.errors import ComputationError, InputError, RevarbError, check_integer, check_seed, warn_user
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.journal import Checkpoint, Journal, discard_journals
from revarb.optim.status import Status
from revarb.runtime.interrupts import capture_interrupts
from revarb.runtime.mesh import count_devices
from revarb.runtime.numerics import with_numerics
from revarb.runtime.progress import progress_lines
from revarb.training.batched_paths import Path, initialise_together, trace_together
from revarb.training.calibrate import calibrate
from revarb.training.fit import count_all_steps, fit_task, locate_checkpoints
from revarb.training.problem import Problem, Report, Task, initialise, prepare
from revarb.training.solve import build_model, train_networks
from revarb.training.workers import (
    TaskReport,
    call_task,
    is_cluster_set,
    run_in_processes,
    run_in_turn,
    stop_on_interrupt,
)

Members = Sequence[tuple[int, Checkpoint | None]]  # seed and checkpoint of each member
Outcome = FittedRGP | RevarbError  # a member, or the error of its fit: the other members are kept


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
    jobs, task = _check_jobs(jobs), prepare(spec, as_records(train))
    warn_about_quality(as_records(train))
    members = list(zip(seeds, locate_checkpoints(task, seeds, resume), strict=True))
    lines = progress_lines([f"seed {seed}" for seed in seeds], count_all_steps(task), progress)
    with lines as update, capture_interrupts(raise_after=1) as pressed:
        outcomes = list(_fit_all(task, members, jobs, update, pressed))
    ensemble = _build_ensemble(outcomes, len(seeds), interrupted=bool(pressed))
    if len(outcomes) == len(seeds) and ensemble.status is not Status.INTERRUPTED:
        discard_journals([checkpoint for _, checkpoint in members])
    return ensemble


def _check_jobs(jobs: int | None) -> int | None:
    if jobs is None or (isinstance(jobs, int) and jobs == -1):
        return jobs
    return check_integer("jobs (or -1 for one per core)", jobs, least=1)


def _fit_all(
    task: Task, members: Members, jobs: int | None, report: TaskReport, pressed: Sequence[int]
) -> Iterator[Outcome]:
    tasks = [(task, seed, checkpoint) for seed, checkpoint in members]
    if not is_cluster_set():
        if jax.default_backend() != "cpu" and count_devices() == 1:
            return iter(fit_batched(task, [seed for seed, _ in members], stop_on_interrupt(report, pressed)))
        if effective_n_jobs(jobs) == 1:  # pyright: ignore[reportArgumentType]
            return (member for _, member in run_in_turn(_fit_member, tasks, report, pressed))
    if count_devices() > 1:
        raise InputError("a mesh cannot be shared with other processes; use jobs=1 and no cluster inside set_mesh")
    return (member for _, member in run_in_processes(_fit_member, tasks, jobs, report, pressed, lost="restarts"))


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
    """Fit all members at once, as one program (batched_paths.py); without a journal."""
    starts = initialise_together(partial(initialise, task), seeds)
    problems = [
        problem if isinstance(problem, RevarbError) else call_task(_train_networks, (problem,), partial(report, member))
        for member, problem in enumerate(starts)
    ]
    paths = trace_together(problems, report)
    return [
        _finish(task, *member, partial(report, number))
        for number, member in enumerate(zip(problems, paths, strict=True))
    ]


def _finish(task: Task, problem: Problem | RevarbError, path: Path | RevarbError, report: Report) -> Outcome:
    if isinstance(path, RevarbError):  # that of its problem, if there was one
        return path
    assert not isinstance(problem, RevarbError)
    return calibrate(build_model(problem, path[-1][1]), task, report, Journal())


def _train_networks(problem: Problem, report: Report) -> Problem:
    return train_networks(problem, report, Journal())


def _fit_member(task: Task, seed: int, checkpoint: Checkpoint | None, report: Report) -> FittedRGP:
    return fit_task(task, seed, report, checkpoint)
