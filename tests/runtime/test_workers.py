"""Tasks in turn, reports of workers to their parent, and forks; tasks in processes are tested with restarts."""

import platform
import socket
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener

import pytest

from revarb.errors import InputError
from revarb.runtime.workers import Address, check_jobs, receive_reports, run_in_turn, send_reports, stop_on_interrupt
from support.processes import run_python


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


def test_after_ctrl_c_no_task_starts_and_a_report_stops_its_task():
    pressed, seen = [], []
    outcomes = run_in_turn(lambda number, report: number, [(1,), (2,), (3,)], lambda *said: None, pressed)
    assert next(outcomes) == (0, 1)
    pressed.append(2)
    assert list(outcomes) == []
    report = stop_on_interrupt(lambda *said: seen.append(said), pressed)
    with pytest.raises(KeyboardInterrupt):
        report(0, 2, "b")
    assert seen == [(0, 2, "b")]


def test_numbers_of_processes():
    assert [check_jobs(jobs) for jobs in (None, -1, 1, 7)] == [None, -1, 1, 7]
    for wrong in (0, -2, -1.0, "2", True):
        with pytest.raises(InputError, match=r"jobs \(or -1 for one per core\) must be a whole number of at least 1"):
            check_jobs(wrong)


def test_reports_arrive_in_order_and_stop_comes_back():
    taken, stop = [], False
    with receive_reports(taken.append, lambda: stop) as address, send_reports(address) as report:
        report((0, "first"))
        report((0, "second"))
        assert taken == [(0, "first"), (0, "second")]
        stop = True
        with pytest.raises(KeyboardInterrupt):
            report((0, "third"))
    assert len(taken) == 3


def test_a_worker_without_a_listener_or_on_another_host_continues():
    before = set(threading.enumerate())
    with receive_reports(print, lambda: True) as address, send_reports(address._replace(host="elsewhere")) as report:
        report("lost")
    with send_reports(address) as report:
        report("lost")
    assert set(threading.enumerate()) <= before  # threads of other tests may have ended meanwhile
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address.place)


def test_connections_without_the_key_are_refused():
    """One with the wrong key, one that sends nothing, one that closes at once."""
    taken = []
    with receive_reports(taken.append, lambda: False) as address:
        with pytest.raises(AuthenticationError):
            Client(address.place, authkey=b"guess")
        silent = socket.create_connection(address.place)
        socket.create_connection(address.place).close()
        with send_reports(address) as report:
            report("received")
        silent.close()
    assert taken == ["received"]


def test_a_worker_whose_parent_is_gone_stops():
    """The parent closes the connection, so that the result is no longer needed."""
    with Listener(("127.0.0.1", 0), authkey=b"key") as parent:
        answering = threading.Thread(target=lambda: parent.accept().close())
        answering.start()
        with send_reports(Address(parent.address, platform.node(), b"key")) as report:
            answering.join()
            with pytest.raises(KeyboardInterrupt):
                report("report")


FIT = """
import multiprocessing, revarb
from support import small

def fit(number):
    try:
        return str(revarb.ARX(2, 2).fit(small.record()).status)
    except revarb.InputError as error:
        return str(error)

if __name__ == "__main__":
    fit(0)
    with multiprocessing.get_context("{method}").Pool(1) as pool:
        print(pool.map(fit, [0])[0])
"""


@pytest.mark.parametrize(
    ("method", "said"), [("fork", "this process was forked after JAX had started"), ("spawn", "converged")]
)
def test_a_fork_after_a_fit_is_refused_and_a_spawned_process_fits(tmp_path, method, said):
    (tmp_path / "script.py").write_text(FIT.format(method=method))
    done = run_python(tmp_path / "script.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(said) and ("get_context('spawn')" in done.stdout) == (method == "fork")
