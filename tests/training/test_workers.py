"""Independent tasks, one after the other; those in processes are tested with restarts and with choices."""

import pytest

from revarb.errors import InputError
from revarb.training.workers import run_in_turn, stop_on_interrupt


def divide(number, divisor, report):
    report(1, f"{number} by {divisor}")
    if divisor == 0:
        raise InputError("division by zero")
    return number / divisor


def test_tasks_in_turn_report_their_number_and_keep_going_after_an_error():
    seen = []
    outcomes = list(run_in_turn(divide, [(6, 2), (1, 0), (5, 2)], lambda *said: seen.append(said), []))
    assert [number for number, _ in outcomes] == [0, 1, 2]
    assert outcomes[0][1] == 3.0 and outcomes[2][1] == 2.5 and isinstance(outcomes[1][1], InputError)
    assert seen == [(0, 1, "6 by 2"), (1, 1, "1 by 0"), (2, 1, "5 by 2")]


def test_no_task_starts_after_ctrl_c():
    pressed = []
    outcomes = run_in_turn(lambda number, report: number, [(1,), (2,), (3,)], lambda *said: None, pressed)
    assert next(outcomes) == (0, 1)
    pressed.append(2)
    assert list(outcomes) == []


def test_a_report_stops_its_task_after_ctrl_c():
    pressed, seen = [], []
    report = stop_on_interrupt(lambda *said: seen.append(said), pressed)
    report(0, 1, "a")
    pressed.append(2)
    with pytest.raises(KeyboardInterrupt):
        report(0, 2, "b")
    assert len(seen) == 2
