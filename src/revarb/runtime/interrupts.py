"""Ctrl-C where it would do harm waits until the harm is over."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_holds: list[list[int]] = []
"""What has been pressed, for every hold that lasts: one inside another must not keep it to itself."""


@contextmanager
def held_interrupts(patience: int | None = None) -> Iterator[list[int]]:
    """Note Ctrl-C instead of raising KeyboardInterrupt; the list is not empty if it was pressed.

    For compilation, during which JAX does not survive an exception, and for writing what a long fit has found.
    `patience`: so many are noted, the next one is raised. Signals reach the main thread only; elsewhere there is
    nothing to hold.
    """
    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return

    def note(number, frame) -> None:
        for hold in _holds:
            hold.append(number)
        if patience is not None and len(pressed) > patience:
            raise KeyboardInterrupt

    _holds.append(pressed)
    before = signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
        _holds.pop()


@contextmanager
def delayed_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt after the block instead of inside it."""
    with held_interrupts() as pressed:
        yield
    if pressed:
        raise KeyboardInterrupt


@contextmanager
def deaf_children() -> Iterator[None]:
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
def ignored_interrupts() -> Iterator[None]:
    """Ctrl-C does nothing: for a worker process, whose parent sees it too and knows better."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
