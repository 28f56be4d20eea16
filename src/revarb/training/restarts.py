"""Several fits of one task with different seeds: in turn, in processes, on a cluster, or batched on an accelerator."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile

import jax
import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from revarb.config.rgp import RGP
from revarb.data.series import Series, as_records
from revarb.errors import ComputationError, InputError, RevarbError, check_integer, check_seed, warn_user
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.batched import run_batched
from revarb.optim.journal import Checkpoint, Journal, discard_journals
from revarb.optim.lbfgs import Objective, Optimum, maximise
from revarb.optim.status import Status
from revarb.runtime.interrupts import capture_interrupts, ignore_interrupts
from revarb.runtime.mesh import count_devices
from revarb.runtime.numerics import with_numerics
from revarb.runtime.progress import progress_lines
from revarb.runtime.worker_link import Address, receive_reports, send_reports
from revarb.training.calibrate import calibrate
from revarb.training.fit import count_all_steps, fit_task, locate_checkpoints
from revarb.training.objective import bounds_and_gradients
from revarb.training.problem import Task, initialise, make_plan, prepare
from revarb.training.solve import build_model, make_step_report, train_networks
from revarb.variational.parameters import get_form

MemberReport = Callable[[int, int, str], None]  # takes a member, counted from 0, its number of steps done, and a text
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
    task: Task, members: Members, jobs: int | None, report: MemberReport, pressed: Sequence[int]
) -> Iterator[Outcome]:
    if not _is_cluster_set():
        if jax.default_backend() != "cpu":
            return iter(fit_batched(task, [seed for seed, _ in members], _stop_on_interrupt(report, pressed)))
        if effective_n_jobs(jobs) == 1:  # pyright: ignore[reportArgumentType]
            return _fit_in_turn(task, members, report, pressed)
    if count_devices() > 1:
        raise InputError("a mesh cannot be shared with other processes; use jobs=1 and no cluster inside set_mesh")
    return _fit_in_processes(task, members, jobs, report, pressed)


def _is_cluster_set() -> bool:
    # joblib's own backends run on this machine; another one (Dask, Ray) was registered by the user.
    return not type(get_active_backend()[0]).__module__.startswith("joblib._parallel_backends")


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


def fit_batched(task: Task, seeds: Sequence[int], report: MemberReport) -> list[Outcome]:
    """Fit all members at once, with one batched evaluation of the bound for all of them; without a journal."""
    problems = [
        train_networks(initialise(task, seed), partial(report, member), Journal()) for member, seed in enumerate(seeds)
    ]
    plans = [make_plan(problem) for problem in problems]
    rows, form, layout = problems[0].rows, get_form(problems[0].start), problems[0].layout

    def evaluate(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bounds, gradients = bounds_and_gradients(vectors, rows, form, layout)
        return np.asarray(bounds), np.asarray(gradients)

    def run(member: int, objective: Objective) -> Optimum | RevarbError:
        try:
            return maximise(objective, *plans[member], make_step_report(task.spec, partial(report, member)))
        except RevarbError as error:
            return error

    runs = [partial(run, member) for member in range(len(plans))]
    optima = run_batched(runs, np.stack([plan.start for plan in plans]), evaluate)
    return [
        optimum
        if isinstance(optimum, RevarbError)
        else calibrate(build_model(problem, optimum), task, partial(report, member), Journal())
        for member, (problem, optimum) in enumerate(zip(problems, optima, strict=True))
    ]


def _fit_in_turn(task: Task, members: Members, report: MemberReport, pressed: Sequence[int]) -> Iterator[Outcome]:
    for number, member in takewhile(lambda _: not pressed, enumerate(members)):
        yield _fit_member(task, *member, partial(_stop_on_interrupt(report, pressed), number))


def _stop_on_interrupt(report: MemberReport, pressed: Sequence[int]) -> MemberReport:
    # A report that stops the fit after Ctrl-C.
    def report_or_stop(member: int, steps: int, text: str) -> None:
        report(member, steps, text)
        if pressed:
            raise KeyboardInterrupt

    return report_or_stop


def _fit_in_processes(
    task: Task, members: Members, jobs: int | None, report: MemberReport, pressed: Sequence[int]
) -> Iterator[Outcome]:
    workers = None if jobs is None else min(effective_n_jobs(jobs), len(members))
    with receive_reports(lambda message: report(*message), lambda: bool(pressed)) as address:
        started = takewhile(lambda _: not pressed, enumerate(members))
        tasks = (delayed(_fit_in_worker)(task, *member, number, address) for number, member in started)
        try:
            # No more tasks are dispatched than there are workers: none starts after Ctrl-C.
            with ignore_interrupts():  # of the workers that are started here
                outcomes = Parallel(n_jobs=workers, return_as="generator_unordered", pre_dispatch="n_jobs")(tasks)
            yield from outcomes  # pyright: ignore[reportReturnType]
        except KeyboardInterrupt:
            return  # Ctrl-C a second time: the unfinished members are not waited for
        except Exception as error:  # of joblib, not of a member: a worker was killed, or a cluster disconnected
            warn_user(f"restarts were lost ({type(error).__name__}: {error})")


@with_numerics
def _fit_in_worker(task: Task, seed: int, checkpoint: Checkpoint | None, number: int, address: Address) -> Outcome:
    # A terminal sends Ctrl-C to all processes; this one is stopped by the parent's answer to its next report.
    with ignore_interrupts(), send_reports(address) as send:
        return _fit_member(task, seed, checkpoint, lambda steps, text: send((number, steps, text)))


def _fit_member(task: Task, seed: int, checkpoint: Checkpoint | None, report: Callable[[int, str], None]) -> Outcome:
    try:
        return fit_task(task, seed, report, checkpoint)
    except RevarbError as error:
        return error
