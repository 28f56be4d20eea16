"""Fixtures of the tests of the baselines."""

from contextlib import contextmanager

import pytest


@pytest.fixture
def press_ctrl_c(monkeypatch):
    """A function: `capture_interrupts` of a module sees Ctrl-C at one of its calls, counted from 0."""

    def press(module, call):
        calls = iter(range(10**6))

        @contextmanager
        def capture():
            yield [2] if next(calls) == call else []

        monkeypatch.setattr(module, "capture_interrupts", capture)

    return press
