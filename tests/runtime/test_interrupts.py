"""Interrupts that are captured, deferred, ignored and raised again."""

import gc
import signal
import time

import pytest

from revarb.runtime import interrupts
from support.processes import run_python


def test_nested_captures_both_record_and_deferred_interrupts_are_raised_later():
    with interrupts.capture_interrupts() as outer, interrupts.capture_interrupts() as inner:
        signal.raise_signal(signal.SIGINT)
    assert len(outer) == len(inner) == 1
    with pytest.raises(KeyboardInterrupt), interrupts.capture_interrupts(raise_after=1):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    done = []
    with pytest.raises(KeyboardInterrupt), interrupts.defer_interrupts():
        signal.raise_signal(signal.SIGINT)
        done.append(True)  # deferred ones are raised after the block
    assert done


def test_an_interrupt_ends_the_process_where_nothing_can_be_lost():
    """It cannot be caught there; after the block it is a KeyboardInterrupt again."""
    program = """
import signal
from revarb.runtime.interrupts import exit_on_interrupt
with exit_on_interrupt():
    pass
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("raised", flush=True)
with exit_on_interrupt():
    try:
        signal.raise_signal(signal.SIGINT)
    except BaseException:
        print("caught", flush=True)
print("ran on", flush=True)
"""
    done = run_python("-c", program)
    expected = (interrupts.INTERRUPTED, "raised\n", "interrupted: stopped before the end\n")
    assert (done.returncode, done.stdout, done.stderr) == expected
    with interrupts.capture_interrupts() as pressed, interrupts.exit_on_interrupt():
        signal.raise_signal(signal.SIGINT)  # one that is captured does not end the process
    assert len(pressed) == 1


def test_an_interrupt_inside_a_callback_is_raised_again():
    def callback(phase, info):
        gc.callbacks.remove(callback)
        signal.raise_signal(signal.SIGINT)  # Python cannot raise it from here

    with pytest.raises(KeyboardInterrupt), interrupts.recover_interrupts():
        gc.callbacks.append(callback)
        gc.collect()
        for _ in range(60_000):  # ended by the interrupt, which comes from another thread: late on a busy machine
            time.sleep(0.01)


def test_children_started_while_interrupts_are_ignored_ignore_them_too():
    program = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    with interrupts.ignore_interrupts():
        ended = run_python("-c", program)
    assert ended.stdout.strip() == "True"
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
