"""Fits that are killed at a chosen evaluation of the bound, and what their journals contain."""

import os
import signal
import time
from contextlib import contextmanager

import jax
import numpy as np
import pytest

from revarb.fitting import objective
from revarb.models.recipe import R0_FREE, Recipe, Recognition, Stage
from revarb.runtime.unfinished import keep_journals
from support import small

TWO_STAGES = Recipe(stages=(Stage(R0_FREE, 6), Stage(R0_FREE, 8)))
NETWORKS = Recognition(hidden=(6,), start_steps=100, rounds=(50, 50))  # as in support/recognised.py: compiled once


class Killed(BaseException):
    """In place of SIGKILL, within this process."""


@contextmanager
def count_evaluations(kill_at=None, press_at=None, with_signal=signal.SIGINT):
    """Count the evaluations of the bound in a list; at one of them raise `Killed`, or send Ctrl-C or another signal."""
    real, seen = objective.bound_and_gradient, []

    def counted(*args, **kwargs):
        seen.append(time.time())
        if len(seen) == kill_at:
            raise Killed
        if len(seen) == press_at:
            os.kill(os.getpid(), with_signal)
        return real(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objective, "bound_and_gradient", counted)
        yield seen


def kill_fit(spec, evaluation, **arguments):
    """A fit that ends at this evaluation of the bound."""
    with count_evaluations(kill_at=evaluation), pytest.raises(Killed):
        spec.fit(small.record(), **arguments)


def fit_with_journal(folder, spec, **arguments):
    """An uninterrupted fit, its journal's path and content."""
    with keep_journals():
        model = spec.fit(small.record(), **arguments)
        [path] = folder.iterdir()
        content = path.read_bytes()
    assert not path.exists()
    return model, path, content


def entry_ends(content):
    """Where entries end."""
    ends, end = [], 0
    while end < len(content):
        end += 40 + int.from_bytes(content[end : end + 8], "little")
        ends.append(end)
    assert ends[-1] == len(content)
    return ends


def entry_names(content):
    """What each entry is about."""
    begins = [0, *entry_ends(content)[:-1]]
    return [content[begin + 40 :].split(b"\n", 1)[0].decode() for begin in begins]


def assert_same(model, other):
    """Equal parameters, bound, status and history, to the last bit."""
    for ours, theirs in zip(jax.tree.leaves(model.trained), jax.tree.leaves(other.trained), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert (model.bound, model.status, model.history) == (other.bound, other.status, other.history)
