"""Many starts of one fit: in processes on this machine or a cluster, or all together on an accelerator."""

import warnings
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
from revarb.errors import InputError, check_seed, check_whole
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_rgp import FittedRGP
from revarb.optim.batched import run_together
from revarb.optim.journal import Checkpoint, Journal, discard
from revarb.optim.lbfgs import Objective, Optimum, maximise
from revarb.optim.status import Status
from revarb.runtime.interrupts import deaf_children, held_interrupts, ignored_interrupts
from revarb.runtime.mesh import devices_in_mesh
from revarb.runtime.numerics import with_numerics
from revarb.runtime.progress import progress_lines
from revarb.runtime.worker_link import Address, receive_reports, send_reports
from revarb.training.calibrate import calibrated
from revarb.training.fit import checkpoints_of, fitted, steps_in_all
from revarb.training.objective import bounds_and_gradients
from revarb.training.problem import affordable, plan_of, prepare
from revarb.training.solve import by_steps, trained, with_trained_networks
from revarb.variational.parameters import form_of

Report = Callable[[int, int, str], None]
"""A member, counted from 0, the steps that are behind it, and a text."""


Members = Sequence[tuple[int, Checkpoint | None]]
"""The seed of each, and where its journal is."""


Outcome = FittedRGP | InputError
"""A member, or why there is none: one start that leads nowhere must not cost the others."""


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
    """Fit `spec` with the seeds seed, seed + 1, …; `RGP.fit(restarts=…)` is the public door.

    Journals of members that have finished stay until all have: a resumed call replays them.
    """
    first = check_seed(seed)
    seeds = range(first, check_seed(first + check_whole("restarts", restarts, least=1) - 1) + 1)
    jobs = _checked_jobs(jobs)
    records = as_records(train)
    spec = affordable(spec, records)  # what is wrong with the records is said here, and once
    members = list(zip(seeds, checkpoints_of(spec, records, seeds, resume), strict=True))
    lines = progress_lines([f"seed {seed}" for seed in seeds], steps_in_all(spec, records), progress)
    with lines as update, held_interrupts(patience=1) as pressed:
        outcomes = list(_outcomes(spec, records, members, jobs, update, pressed))
    ensemble = _ensemble(outcomes, len(seeds), interrupted=bool(pressed))
    if len(outcomes) == len(seeds) and ensemble.status is not Status.INTERRUPTED:
        discard([checkpoint for _, checkpoint in members])
    return ensemble


def _checked_jobs(jobs: int | None) -> int | None:
    if jobs is None or (isinstance(jobs, int) and jobs == -1):
        return jobs
    return check_whole("jobs (or -1 for one per core)", jobs, least=1)


def _outcomes(
    spec: RGP, records: Sequence[Series], members: Members, jobs: int | None, report: Report, pressed: Sequence[int]
) -> Iterator[Outcome]:
    if not _cluster_is_set():
        if jax.default_backend() != "cpu":
            return iter(fit_together(spec, records, [seed for seed, _ in members], _or_stop(report, pressed)))
        if effective_n_jobs(jobs) == 1:  # pyright: ignore[reportArgumentType]
            return _fit_here(spec, records, members, report, pressed)
    if devices_in_mesh() > 1:
        raise InputError("a mesh is set, and it does not reach other processes; use jobs=1 inside it, and no cluster")
    return _fit_in_processes(spec, records, members, jobs, report, pressed)


def _cluster_is_set() -> bool:
    # A backend of joblib's own works on this machine; one that somebody registered (Dask, Ray) is there on purpose.
    return not type(get_active_backend()[0]).__module__.startswith("joblib._parallel_backends")


def _ensemble(outcomes: Sequence[Outcome], wanted: int, interrupted: bool) -> Ensemble:
    members = [outcome for outcome in outcomes if isinstance(outcome, FittedRGP)]
    failures = [outcome for outcome in outcomes if isinstance(outcome, InputError)]
    if not members and failures:
        raise failures[0]
    if not members and interrupted:
        raise KeyboardInterrupt  # before the first step of any
    if not members:
        raise InputError("no fit came back: the worker processes died (out of memory?); use fewer jobs")
    for failure in failures:
        warnings.warn(f"a restart was left out: {failure}", stacklevel=5)
    ensemble = Ensemble.of(members)
    if interrupted:
        return replace(ensemble, status=Status.INTERRUPTED)
    if len(outcomes) < wanted:
        warnings.warn(f"only {len(outcomes)} of {wanted} fits came back: workers died (out of memory?)", stacklevel=5)
    return ensemble


def fit_together(spec: RGP, records: Sequence[Series], seeds: Sequence[int], report: Report) -> list[Outcome]:
    """All members advance at once, every evaluation of the bound one call for all of them; without a journal."""
    problems = [
        with_trained_networks(prepare(spec, records, seed), partial(report, member), Journal())
        for member, seed in enumerate(seeds)
    ]
    plans = [plan_of(problem) for problem in problems]
    rows, form, layout = problems[0].rows, form_of(problems[0].start), problems[0].layout

    def evaluate(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bounds, gradients = bounds_and_gradients(vectors, rows, form, layout)
        return np.asarray(bounds), np.asarray(gradients)

    def run(member: int, objective: Objective) -> Optimum | InputError:
        try:
            return maximise(objective, *plans[member], by_steps(spec, partial(report, member)))
        except InputError as error:
            return error

    runs = [partial(run, member) for member in range(len(plans))]
    optima = run_together(runs, np.stack([plan.start for plan in plans]), evaluate)
    return [
        optimum
        if isinstance(optimum, InputError)
        else calibrated(trained(problem, optimum), records, partial(report, member), Journal())
        for member, (problem, optimum) in enumerate(zip(problems, optima, strict=True))
    ]


def _fit_here(
    spec: RGP, records: Sequence[Series], members: Members, report: Report, pressed: Sequence[int]
) -> Iterator[Outcome]:
    for number, member in takewhile(lambda _: not pressed, enumerate(members)):
        yield _fit_member(spec, records, *member, partial(_or_stop(report, pressed), number))


def _or_stop(report: Report, pressed: Sequence[int]) -> Report:
    # A report that ends a fit once Ctrl-C was pressed.
    def report_or_stop(member: int, steps: int, text: str) -> None:
        report(member, steps, text)
        if pressed:
            raise KeyboardInterrupt

    return report_or_stop


def _fit_in_processes(
    spec: RGP, records: Sequence[Series], members: Members, jobs: int | None, report: Report, pressed: Sequence[int]
) -> Iterator[Outcome]:
    workers = None if jobs is None else min(effective_n_jobs(jobs), len(members))
    with receive_reports(lambda message: report(*message), lambda: bool(pressed)) as address:
        begun = takewhile(lambda _: not pressed, enumerate(members))
        tasks = (delayed(_fit_there)(spec, records, *member, number, address) for number, member in begun)
        try:
            # No more tasks ahead than there are workers: none begins after Ctrl-C.
            with deaf_children():
                outcomes = Parallel(n_jobs=workers, return_as="generator_unordered", pre_dispatch="n_jobs")(tasks)
            yield from outcomes  # pyright: ignore[reportReturnType]
        except KeyboardInterrupt:
            return  # pressed again: no waiting for the members under way
        except Exception as error:  # of the engine, not of a member: a worker was killed, a cluster went away
            warnings.warn(f"restarts were lost ({type(error).__name__}: {error})", stacklevel=6)


@with_numerics
def _fit_there(
    spec: RGP, records: Sequence[Series], seed: int, checkpoint: Checkpoint | None, number: int, address: Address
) -> Outcome:
    # Ctrl-C in a terminal reaches all processes. The parent's answer to the next report is what stops this one.
    with ignored_interrupts(), send_reports(address) as send:
        return _fit_member(spec, records, seed, checkpoint, lambda steps, text: send((number, steps, text)))


def _fit_member(
    spec: RGP,
    records: Sequence[Series],
    seed: int,
    checkpoint: Checkpoint | None,
    report: Callable[[int, str], None],
) -> Outcome:
    try:
        return fitted(prepare(spec, records, seed), records, report, checkpoint)
    except InputError as error:
        return error
