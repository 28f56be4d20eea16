"""Signal handling: record, defer, block or ignore SIGINT (Ctrl-C) while JAX compiles or a result is being saved."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_captures: list[list[int]] = []  # the active captures; an interrupt is recorded in all of them, nested ones included


@contextmanager
def capture_interrupts(raise_after: int | None = None) -> Iterator[list[int]]:
    """Record SIGINT instead of raising KeyboardInterrupt; the yielded list is not empty if it was received.

    Used during compilation, because JAX cannot recover from an exception there, and while the result of a long fit is
    built. With `raise_after`, that number of interrupts is recorded and the next one raises. Python delivers signals to
    the main thread only; in other threads nothing is captured.
    """
    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return

    def record_signal(number, frame) -> None:
        for capture in _captures:
            capture.append(number)
        if raise_after is not None and len(pressed) > raise_after:
            raise KeyboardInterrupt

    _captures.append(pressed)
    previous = signal.signal(signal.SIGINT, record_signal)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, previous)
        _captures.pop()


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt after the block instead of inside it."""
    with capture_interrupts() as pressed:
        yield
    if pressed:
        raise KeyboardInterrupt


@contextmanager
def block_interrupts_in_children() -> Iterator[None]:
    """Block SIGINT in processes that are started inside the block: a terminal sends it to all of its processes."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


@contextmanager
def ignore_interrupts() -> Iterator[None]:
    """Ignore SIGINT: for a worker process, which its parent stops."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
