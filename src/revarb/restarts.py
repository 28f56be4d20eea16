"""Many starts of one fit: in processes on this machine or a cluster, or all together on an accelerator."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import takewhile
from multiprocessing import parent_process

import jax
import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from revarb.ensemble import Ensemble
from revarb.errors import InputError, check_seed, check_whole
from revarb.fit import bounds_and_gradients, done, iterations, objective_of, plan_of, prepare, trained
from revarb.fitted import FittedRGP
from revarb.frame import Frame
from revarb.interrupts import held_interrupts
from revarb.numerics import with_numerics
from revarb.optimise import Step, maximise
from revarb.parameters import form_of
from revarb.progress import progress_lines
from revarb.reports import Address, receive_reports, send_reports
from revarb.rgp import RGP
from revarb.series import Series, as_records
from revarb.together import run_together

Report = Callable[[int, Step], None]
"""A member, counted from 0, and its last step."""


@with_numerics
def fit_restarts(
    spec: RGP, train: Series | Sequence[Series], seed: int, restarts: int, jobs: int | None, progress: bool
) -> Ensemble:
    """Fit `spec` with the seeds seed, seed + 1, …; `RGP.fit(restarts=…)` is the public door."""
    first = check_seed(seed)
    seeds = range(first, first + check_whole("restarts", restarts, least=1))
    if jobs is not None and jobs != -1:  # which is joblib's word for all cores
        jobs = check_whole("jobs", jobs, least=1)
    records = as_records(train)
    Frame.of(records, spec.lags_for(records[0].u.shape[1]))  # what is wrong with the records is said here, and once
    with progress_lines([f"seed {seed}" for seed in seeds], iterations(spec.recipe), progress) as update:

        def report(member: int, step: Step) -> None:
            update(member, done(spec.recipe, step), f"bound {step.bound:.1f}")

        if jax.default_backend() == "cpu":
            return Ensemble.of(fit_apart(spec, records, seeds, jobs, report))
        return Ensemble.of(fit_together(spec, records, seeds, report))


def fit_together(spec: RGP, records: Sequence[Series], seeds: Sequence[int], report: Report) -> list[FittedRGP]:
    """All members advance at once, every evaluation of the bound one call for all of them."""
    problems = [prepare(spec, records, seed) for seed in seeds]
    plans = [plan_of(problem) for problem in problems]
    rows, form, layout = problems[0].rows, form_of(problems[0].start), problems[0].layout

    def evaluate(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bounds, gradients = bounds_and_gradients(vectors, rows, form, layout)
        return np.asarray(bounds), np.asarray(gradients)

    runs = [
        lambda objective, member=member, plan=plan: maximise(objective, *plan, partial(report, member))
        for member, plan in enumerate(plans)
    ]
    optima = run_together(runs, np.stack([plan.start for plan in plans]), evaluate)
    return [trained(problem, optimum) for problem, optimum in zip(problems, optima, strict=True)]


def fit_apart(
    spec: RGP, records: Sequence[Series], seeds: Sequence[int], jobs: int | None, report: Report
) -> list[FittedRGP]:
    """One member after the other in each of `jobs` processes. After Ctrl-C: the members that were begun."""
    with held_interrupts() as pressed:
        if effective_n_jobs(jobs) == 1:  # pyright: ignore[reportArgumentType]
            begun = takewhile(lambda _: not pressed, enumerate(seeds))
            members = [_fit_here(spec, records, seed, partial(report, number), pressed) for number, seed in begun]
        else:
            members = list(_fit_in_processes(spec, records, seeds, jobs, report, pressed))
    if not members and pressed:
        raise KeyboardInterrupt  # before the first step of any
    if not members:
        raise InputError("all worker processes died before a fit was finished (out of memory?); use fewer jobs")
    return members


def _fit_here(
    spec: RGP, records: Sequence[Series], seed: int, report: Callable[[Step], None], pressed: Sequence[int]
) -> FittedRGP:
    def report_or_stop(step: Step) -> None:
        report(step)
        if pressed:
            raise KeyboardInterrupt

    problem = prepare(spec, records, seed)
    return trained(problem, maximise(objective_of(problem), *plan_of(problem), report_or_stop))


def _fit_in_processes(
    spec: RGP, records: Sequence[Series], seeds: Sequence[int], jobs: int | None, report: Report, pressed: Sequence[int]
) -> Iterator[FittedRGP]:
    with receive_reports(lambda message: report(*message), lambda: bool(pressed)) as address:
        begun = takewhile(lambda _: not pressed, enumerate(seeds))
        tasks = (delayed(_fit_there)(spec, records, seed, number, address) for number, seed in begun)
        try:
            # No more tasks ahead than there are workers: none begins after Ctrl-C.
            workers = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
            yield from workers(tasks)  # pyright: ignore[reportReturnType]
        except BrokenProcessPool:
            return  # a worker was killed: what has come back is kept


@with_numerics
def _fit_there(spec: RGP, records: Sequence[Series], seed: int, member: int, address: Address) -> FittedRGP:
    _leave_interrupts_to_the_parent()
    with send_reports(address) as send:
        problem = prepare(spec, records, seed)
        return trained(problem, maximise(objective_of(problem), *plan_of(problem), lambda step: send((member, step))))


def _leave_interrupts_to_the_parent() -> None:
    # Ctrl-C in a terminal reaches all processes. The parent's answer to the next report is what stops this one.
    if parent_process() is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
