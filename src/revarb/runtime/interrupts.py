"""Ctrl-C where it would do harm waits until the harm is over."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_captures: list[list[int]] = []
"""What has been pressed, for every hold that lasts: one inside another must not keep it to itself."""


@contextmanager
def capture_interrupts(raise_after: int | None = None) -> Iterator[list[int]]:
    """Note Ctrl-C instead of raising KeyboardInterrupt; the list is not empty if it was pressed.

    For compilation, during which JAX does not survive an exception, and for writing what a long fit has found.
    `raise_after`: how many interrupts are recorded before one is raised. Signals reach the main thread only; elsewhere there is
    nothing to hold.
    """
    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return

    def note(number, frame) -> None:
        for hold in _captures:
            hold.append(number)
        if raise_after is not None and len(pressed) > raise_after:
            raise KeyboardInterrupt

    _captures.append(pressed)
    before = signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
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
    """Processes that are started inside never see Ctrl-C, which a terminal sends to all of its processes."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def ignore_interrupts() -> Iterator[None]:
    """Ctrl-C does nothing: for a worker process, whose parent sees it too and knows better."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
