"""Progress reports from worker processes to their parent, which answers each one with "continue" or "stop".

Workers on another host are not connected: they send no reports and run to the end.
"""

import os
import platform
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from typing import Any, NamedTuple


class Address(NamedTuple):
    """Where the parent listens: socket address, host name, and the key that authenticates a worker."""

    place: Any  # as the listener gives it
    host: str
    key: bytes


@contextmanager
def receive_reports(take: Callable[[Any], None], stop: Callable[[], bool]) -> Iterator[Address]:
    """Listen for workers and yield the address; `take` gets each report, `stop` says whether the worker must stop."""
    key, closing = os.urandom(16), threading.Event()
    with Listener(("127.0.0.1", 0)) as listener:
        address = Address(listener.address, platform.node(), key)
        arguments = (listener, key, take, stop, closing)
        accepting = threading.Thread(target=_accept, args=arguments, daemon=True)
        accepting.start()
        try:
            yield address
        finally:
            closing.set()
            socket.create_connection(address.place).close()  # closing the listener does not interrupt `accept`
            accepting.join()


def _accept(
    listener: Listener, key: bytes, take: Callable[[Any], None], stop: Callable[[], bool], closing: threading.Event
) -> None:
    while True:
        try:
            connection = listener.accept()
        except OSError:  # the client has disconnected already
            continue
        if closing.is_set():
            return
        threading.Thread(target=_serve, args=(connection, key, take, stop), daemon=True).start()


def _serve(connection: Connection, key: bytes, take: Callable[[Any], None], stop: Callable[[], bool]) -> None:
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
