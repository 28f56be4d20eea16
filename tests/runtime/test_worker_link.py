import platform
import socket
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener

import pytest

from revarb.runtime.workers import Address, receive_reports, send_reports


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


def test_a_worker_without_a_listener_continues():
    with receive_reports(print, lambda: True) as address:
        pass
    with send_reports(address) as report:
        report("lost")


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


def test_another_host_is_not_contacted():
    with receive_reports(print, lambda: True) as address, send_reports(address._replace(host="elsewhere")) as report:
        report("lost")


def test_a_worker_whose_parent_is_gone_stops():
    """The parent closes the connection, so that the result is no longer needed."""
    with Listener(("127.0.0.1", 0), authkey=b"key") as parent:
        answering = threading.Thread(target=lambda: parent.accept().close())
        answering.start()
        with send_reports(Address(parent.address, platform.node(), b"key")) as report:
            answering.join()
            with pytest.raises(KeyboardInterrupt):
                report("report")


def test_nothing_is_left_behind():
    before = set(threading.enumerate())
    with receive_reports(print, lambda: False) as address:
        pass
    assert set(threading.enumerate()) <= before  # threads of other tests may have ended meanwhile
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address.place)
