"""Ctrl-C where it would do harm waits until the harm is over."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_interrupts() -> Iterator[list[int]]:
    """Note Ctrl-C instead of raising KeyboardInterrupt; the list is not empty if it was pressed.

    For compilation, during which JAX does not survive an exception, and for writing what a long fit has found.
    Signals reach the main thread only; elsewhere there is nothing to hold.
    """
    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def delayed_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt after the block instead of inside it."""
    with held_interrupts() as pressed:
        yield
    if pressed:
        raise KeyboardInterrupt
