"""Independent tasks, one after the other or in worker processes, with progress and Ctrl-C.

A worker sends its progress to the parent through a local socket, and the parent answers each report with "continue" or
"stop". Workers on another host are not connected: they send no reports and run to the end.
"""

import os
import platform
import socket
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from typing import Any, NamedTuple

from revarb.errors import RevarbError, check_integer, warn_user
from revarb.runtime.interrupts import ignore_interrupts

WORKER_MEMORY = 2_000_000_000  # bytes by which a worker may grow

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

    The function is wrapped in `with_numerics` if it computes. `lost` says what is lost where workers are killed or a
    cluster disconnects.
    """
    from joblib import Parallel, delayed

    workers = None if jobs is None else min(count_workers(jobs), len(tasks))
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


def _call_in_worker(function: Callable[..., Any], task: tuple, number: int, address: "Address") -> Outcome:
    # A terminal sends Ctrl-C to all processes; this one is stopped by the parent's answer to its next report.
    _keep_programs()
    with ignore_interrupts(), send_reports(address) as send:
        return number, call_task(function, task, lambda steps, text: send((number, steps, text)))


def _keep_programs() -> None:
    # Where psutil is installed, joblib replaces a worker whose memory has grown by 300 MB, as the programs of a choice
    # make it; they are then traced and loaded again.
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = WORKER_MEMORY  # joblib has no setting for it


def check_jobs(jobs: object) -> int | None:
    """A number of processes as the user gives it: None, -1 for one per core, or 1 and more."""
    if jobs is None or (isinstance(jobs, int) and jobs == -1):
        return jobs
    return check_integer("jobs (or -1 for one per core)", jobs, least=1)


def count_workers(jobs: int | None) -> int:
    """The number of processes that joblib takes for `jobs`; None: what `joblib.parallel_config` says, else 1."""
    from joblib import effective_n_jobs  # imported here and below: 0.2 s, and most calls need no processes

    return effective_n_jobs(jobs)  # pyright: ignore[reportArgumentType]


def is_cluster_set() -> bool:
    """Whether the user has set a backend of joblib that is not its own, such as Dask or Ray."""
    from joblib.parallel import get_active_backend

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


class Address(NamedTuple):
    """Where the parent listens: socket address, host name, and the key that authenticates a worker."""

    place: Any  # as the listener gives it
    host: str
    key: bytes


@contextmanager
def receive_reports(take: Callable[[Any], None], stop: Callable[[], bool]) -> Iterator[Address]:
    """Listen for workers and yield the address; `take` gets each report, `stop` says whether the worker must stop."""
    key, closing = os.urandom(16), threading.Event()

    def accept() -> None:
        while True:
            try:
                connection = listener.accept()
            except OSError:  # the client has disconnected already
                continue
            if closing.is_set():
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    def serve(connection: Connection) -> None:
        # One thread per connection, authentication included: a client that sends nothing does not delay the others.
        with connection:
            try:
                deliver_challenge(connection, key)
                answer_challenge(connection, key)
                while True:
                    take(connection.recv())
                    connection.send(stop())
            except (EOFError, OSError, AuthenticationError):
                return

    with Listener(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield Address(listener.address, platform.node(), key)
        finally:
            closing.set()
            socket.create_connection(listener.address).close()  # pyright: ignore[reportArgumentType] (wakes `accept`)
            accepting.join()


@contextmanager
def send_reports(address: Address) -> Iterator[Callable[[Any], None]]:
    """Connect to the parent and yield `report(message)`.

    `report` raises KeyboardInterrupt if the parent answers "stop" or has gone away.
    """
    try:
        connection = Client(address.place, authkey=address.key) if address.host == platform.node() else None
    except (EOFError, OSError, AuthenticationError):
        connection = None
    if connection is None:
        yield lambda message: None
        return
    with connection:

        def report(message: Any) -> None:
            try:
                connection.send(message)
                stop = connection.recv()
            except (EOFError, OSError):
                stop = True
            if stop:
                raise KeyboardInterrupt

        yield report
