"""A line from worker processes to the one that waits for them: reports come in, "go on" or "stop" goes back.

Workers of another host cannot reach it; they then work without reports, to the end.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, NamedTuple


class Address(NamedTuple):
    """Where to report to, and the proof that one may."""

    place: Any  # as the listener gives it
    key: bytes


@contextmanager
def receive_reports(take: Callable[[Any], None], stop: Callable[[], bool]) -> Iterator[Address]:
    """Yield the address at which `take` gets the workers' reports; `stop` is asked what to answer."""
    key = os.urandom(16)
    with Listener(("127.0.0.1", 0), authkey=key) as listener:
        threading.Thread(target=_accept, args=(listener, take, stop), daemon=True).start()
        yield Address(listener.address, key)


def _accept(listener: Listener, take: Callable[[Any], None], stop: Callable[[], bool]) -> None:
    while True:
        try:
            connection = listener.accept()
        except OSError:  # closed: all is done
            return
        except Exception:
            continue
        threading.Thread(target=_listen, args=(connection, take, stop), daemon=True).start()


def _listen(connection: Connection, take: Callable[[Any], None], stop: Callable[[], bool]) -> None:
    with connection:
        try:
            while True:
                take(connection.recv())
                connection.send(stop())
        except (EOFError, OSError):
            return


@contextmanager
def send_reports(address: Address) -> Iterator[Callable[[Any], None]]:
    """Yield `report(message)`, which raises KeyboardInterrupt when the answer is to stop."""
    try:
        connection = Client(address.place, authkey=address.key)
    except OSError:
        yield lambda message: None
        return
    with connection:

        def report(message: Any) -> None:
            try:
                connection.send(message)
                stop = connection.recv()
            except (EOFError, OSError):
                return
            if stop:
                raise KeyboardInterrupt

        yield report
