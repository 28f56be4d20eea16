"""Signal handling: record, defer, ignore or recover SIGINT (Ctrl-C) while JAX compiles or a result is being saved."""

import _thread
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

INTERRUPTED = 130  # exit status of a process that Ctrl-C has ended: 128 + SIGINT
STDERR = 2  # its file descriptor
RECOVERY_SECONDS = 0.01  # until an interrupt that a callback swallowed is raised again

_captures: list[list[int]] = []  # the active captures; an interrupt is recorded in all of them, nested ones included


@contextmanager
def capture_interrupts(raise_after: int | None = None) -> Iterator[list[int]]:
    """Record SIGINT instead of raising KeyboardInterrupt; the yielded list is not empty if it was received.

    Used during compilation, because JAX cannot recover from an exception there, and while the result of a long fit is
    built. With `raise_after`, that number of interrupts is recorded and the next one raises. Python delivers signals to
    the main thread only; in other threads nothing is captured.
    """
    pressed: list[int] = []
    if not _is_main_thread():
        yield pressed
        return

    def record_signal(number, frame) -> None:
        for capture in _captures:
            capture.append(number)
        if raise_after is not None and len(pressed) > raise_after:
            raise KeyboardInterrupt
        if raise_after is not None:  # what is at work can be a compilation of several seconds
            os.write(STDERR, b"interrupted: ending what is at work; press Ctrl-C again to stop at once\n")

    _captures.append(pressed)
    try:
        with _handle_interrupts(record_signal):
            yield pressed
    finally:
        _captures.pop()


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt after the block instead of inside it."""
    with capture_interrupts() as pressed:
        yield
    if pressed:
        raise KeyboardInterrupt


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """End the process at SIGINT, with its exit status and one line on the standard error.

    For the imports of a command: there is nothing to save yet, and a KeyboardInterrupt inside an import can be lost or
    become another error, because extension modules import others while they start. Where SIGINT does not raise
    KeyboardInterrupt, in other threads or because it is captured or ignored, nothing is changed.
    """

    def end(number, frame) -> None:
        os.write(STDERR, b"interrupted: stopped before the end\n")
        os._exit(INTERRUPTED)

    raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with _handle_interrupts(end) if raises else nullcontext():
        yield


def ignore_interrupts() -> AbstractContextManager[None]:
    """Ignore SIGINT in a block, and in processes that are started in it.

    For worker processes, which their parent stops: a terminal sends SIGINT to all of its processes. (A blocked signal
    would be inherited too, but joblib unblocks it while it starts workers.)
    """
    return _handle_interrupts(signal.SIG_IGN)


@contextmanager
def _handle_interrupts(handler: Any) -> Iterator[None]:
    # Python allows only the main thread to set a handler; in others nothing is changed.
    if not _is_main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def recover_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt again where it was raised inside a callback that Python cannot interrupt.

    JAX has such a callback of the garbage collector: Python would print a traceback and forget the interrupt.
    """
    previous = sys.unraisablehook

    def hook(unraisable: "sys.UnraisableHookArgs") -> None:
        if unraisable.exc_type is KeyboardInterrupt:
            # From another thread and a little later: at once it would be raised inside this callback too.
            threading.Timer(RECOVERY_SECONDS, _thread.interrupt_main).start()
        else:
            previous(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = previous


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
