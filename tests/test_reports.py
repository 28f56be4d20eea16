from multiprocessing import AuthenticationError
from multiprocessing.connection import Client

import pytest

from revarb.reports import Address, receive_reports, send_reports


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


def test_nobody_there_is_no_reason_to_stop_working():
    with receive_reports(print, lambda: True) as address:
        pass
    with send_reports(address) as report:
        report("unheard")


def test_a_stranger_is_not_let_in_and_others_still_are():
    taken = []
    with receive_reports(taken.append, lambda: False) as address:
        with pytest.raises(AuthenticationError):
            Client(address.place, authkey=b"guess")
        with send_reports(address) as report:
            report("heard")
    assert taken == ["heard"]


def test_the_receiver_going_away_silences_the_sender():
    with receive_reports(lambda message: None, lambda: False) as address:
        sender = send_reports(Address(*address))
        report = sender.__enter__()
        report("heard")
    report("perhaps")  # the open connection may live on; no error either way
    sender.__exit__(None, None, None)
