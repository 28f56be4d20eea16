"""Independent tasks of a training, one after the other or in worker processes, with progress and Ctrl-C."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from revarb.errors import RevarbError, warn_user
from revarb.runtime.interrupts import ignore_interrupts
from revarb.runtime.numerics import with_numerics
from revarb.runtime.worker_link import Address, receive_reports, send_reports

TaskReport = Callable[[int, int, str], None]
"""A function that takes a task, counted from 0, its number of steps done, and a text."""

Outcome = tuple[int, Any]
"""The number of a task, and its result, or the `RevarbError` that ended it: the other tasks are kept."""


def run_in_turn(
    function: Callable[..., Any], tasks: Sequence[tuple], report: TaskReport, pressed: Sequence[int]
) -> Iterator[Outcome]:
    """Call `function(*task, report)` for one task after the other, until Ctrl-C."""
    for number, task in takewhile(lambda _: not pressed, enumerate(tasks)):
        yield number, call_task(function, task, partial(stop_on_interrupt(report, pressed), number))


def run_in_processes(
    function: Callable[..., Any],
    tasks: Sequence[tuple],
    jobs: int | None,
    report: TaskReport,
    pressed: Sequence[int],
    lost: str,
) -> Iterator[Outcome]:
    """Call `function(*task, report)` for every task in worker processes; results come as they finish.

    `lost` says what is lost where workers are killed or a cluster disconnects.
    """
    workers = None if jobs is None else min(effective_n_jobs(jobs), len(tasks))
    with receive_reports(lambda message: report(*message), lambda: bool(pressed)) as address:
        started = takewhile(lambda _: not pressed, enumerate(tasks))
        calls = (delayed(_call_in_worker)(function, task, number, address) for number, task in started)
        try:
            # No more tasks are dispatched than there are workers: none starts after Ctrl-C.
            with ignore_interrupts():  # of the workers that are started here
                outcomes = Parallel(n_jobs=workers, return_as="generator_unordered", pre_dispatch="n_jobs")(calls)
            with warnings.catch_warnings():
                # joblib replaces a worker whose memory has grown, and says so; compiled programs are no leak
                warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
                yield from outcomes  # pyright: ignore[reportReturnType]
        except KeyboardInterrupt:
            return  # Ctrl-C a second time: the unfinished tasks are not waited for
        except Exception as error:  # of joblib, not of a task: a worker was killed, or a cluster disconnected
            warn_user(f"{lost} were lost ({type(error).__name__}: {error})")


@with_numerics
def _call_in_worker(function: Callable[..., Any], task: tuple, number: int, address: Address) -> Outcome:
    # A terminal sends Ctrl-C to all processes; this one is stopped by the parent's answer to its next report.
    with ignore_interrupts(), send_reports(address) as send:
        return number, call_task(function, task, lambda steps, text: send((number, steps, text)))


def is_cluster_set() -> bool:
    """Whether the user has set a backend of joblib that is not its own, such as Dask or Ray."""
    return not type(get_active_backend()[0]).__module__.startswith("joblib._parallel_backends")


def call_task(function: Callable[..., Any], task: tuple, report: Callable[[int, str], None]) -> Any:
    """Call a task; return its result, or its error."""
    try:
        return function(*task, report)
    except RevarbError as error:
        return error


def stop_on_interrupt(report: TaskReport, pressed: Sequence[int]) -> TaskReport:
    """A report that stops the task after Ctrl-C."""

    def report_or_stop(task: int, steps: int, text: str) -> None:
        report(task, steps, text)
        if pressed:
            raise KeyboardInterrupt

    return report_or_stop
