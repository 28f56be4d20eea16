"""A line from worker processes to the one that waits for them: reports come in, "go on" or "stop" goes back.

Workers on another host have no line; they then work without reports, to the end.
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
    """Where to report to, on which host, and the proof that one may."""

    place: Any  # as the listener gives it
    host: str
    key: bytes


@contextmanager
def receive_reports(take: Callable[[Any], None], stop: Callable[[], bool]) -> Iterator[Address]:
    """Yield the address at which `take` gets the workers' reports; `stop` is asked what to answer."""
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
            socket.create_connection(address.place).close()  # closing alone would not wake it
            accepting.join()


def _accept(
    listener: Listener, key: bytes, take: Callable[[Any], None], stop: Callable[[], bool], closing: threading.Event
) -> None:
    while True:
        try:
            connection = listener.accept()
        except OSError:  # it went away again
            continue
        if closing.is_set():
            return
        threading.Thread(target=_listen, args=(connection, key, take, stop), daemon=True).start()


def _listen(connection: Connection, key: bytes, take: Callable[[Any], None], stop: Callable[[], bool]) -> None:
    # In a thread of its own from the first word on: a stranger who says nothing keeps nobody waiting.
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
    """Yield `report(message)`: KeyboardInterrupt when the answer is to stop, or when nobody is there any more."""
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
