"""The walk of a_users_day.py: its quick points by `make test`, all by `make test-slow`."""

import pytest

from users_day.a_users_day import POINTS, SLOW


@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=pytest.mark.slow if number in SLOW else ()) for number in POINTS]
)
def test_point(number, tmp_path):
    POINTS[number](tmp_path, print)
