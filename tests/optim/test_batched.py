import os
import signal

import numpy as np
import pytest

from revarb.optim.batched import run_batched
from revarb.optim.lbfgs import Phase, Settings, maximise
from revarb.optim.status import Status

CENTRES = np.array([[1.0, 2.0], [-3.0, 0.5], [0.0, 0.0]])
SETTINGS = Settings(memory=5, ftol=1e-12, gtol=1e-8)


def bowls(vectors):
    return -np.sum((vectors - CENTRES) ** 4, axis=1), -4.0 * (vectors - CENTRES) ** 3


def make_run(iterations):
    phases = [Phase(np.ones(2, dtype=bool), iterations)]
    return lambda objective: maximise(objective, np.full(2, 5.0), phases, SETTINGS, lambda step: None)


def test_every_run_finds_its_maximum_though_they_end_at_different_times():
    calls = []

    def evaluate(vectors):
        calls.append(len(vectors))
        return bowls(vectors)

    found = run_batched([make_run(200), make_run(2), make_run(200)], np.full((3, 2), 5.0), evaluate)
    np.testing.assert_allclose(found[0].vector, CENTRES[0], atol=0.05)
    np.testing.assert_allclose(found[2].vector, CENTRES[2], atol=0.05)
    assert len(found[1].history) == 2 and found[1].status is Status.ITERATION_LIMIT
    assert set(calls) == {3}  # one shape throughout: nothing compiles twice


def test_ctrl_c_reaches_all_runs_and_keeps_what_they_found():
    calls = 0

    def evaluate(vectors):
        nonlocal calls
        calls += 1
        if calls == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return bowls(vectors)

    found = run_batched([make_run(200)] * 3, np.full((3, 2), 5.0), evaluate)
    assert calls == 4
    assert [optimum.status for optimum in found] == [Status.INTERRUPTED] * 3
    assert all(optimum.bound > -np.sum((5.0 - c) ** 4) for optimum, c in zip(found, CENTRES, strict=True))


def test_an_error_in_the_evaluation_ends_them_all():
    def evaluate(vectors):
        raise ArithmeticError("no value")

    with pytest.raises(ArithmeticError, match="no value"):
        run_batched([make_run(5)] * 3, np.full((3, 2), 5.0), evaluate)


def test_an_error_in_one_run_is_raised_when_the_others_have_ended():
    def broken(objective):
        objective(np.zeros(2))
        raise ArithmeticError("mine alone")

    with pytest.raises(ArithmeticError, match="mine alone"):
        run_batched([make_run(5), broken, make_run(5)], np.full((3, 2), 5.0), bowls)
