"""Rows in the order of time, and shuffled ones."""

import numpy as np
import pandas as pd
import pytest

from revarb import datasets
from revarb.data.row_order import MIN_ROWS, look_shuffled
from revarb.data.series import Series
from support import small
from support.data_sets import list_records

ROWS = 200
NOISE = np.random.default_rng(3).normal(size=(ROWS, 3))
U, V, E = NOISE.T


def late(values, rows=1):
    """The values of earlier rows."""
    return np.concatenate([np.zeros(rows), values[:-rows]])


def logistic_map():
    x = np.full(ROWS, 0.3)
    for row in range(1, ROWS):
        x[row] = 4.0 * x[row - 1] * (1.0 - x[row - 1])
    return x


IN_ORDER = {
    "acts a row later": Series(U, late(U) + E),
    "acts ten rows later": Series(U, late(U, 10) + E),
    "acts at once, and a little later": Series(U, U + 0.3 * late(U) + 0.1 * E),
    "acts by its square": Series(U, late(U) ** 2 + 0.3 * E),
    "acts by a product": Series(NOISE[:, :2], late(U * V) + 0.1 * E),
    "two values": Series(np.sign(U), late(np.sign(U)) + E),
    "no linear dependence": Series(None, logistic_map()),
    "an input that is held, no effect": Series(np.repeat(U[:20], 10), E),
    "missing values": Series(U, np.where(V > 0.5, np.nan, late(U) + 0.3 * E)),
    "outliers": Series(U, late(U) + E + 1e6 * (V > 2.0)),
    "a constant, which a fit refuses": Series(np.zeros(ROWS), np.full(ROWS, np.nan)),
}


@pytest.mark.parametrize("record", IN_ORDER.values(), ids=IN_ORDER)
def test_what_depends_on_the_past_is_in_order(record):
    assert not look_shuffled([record])


@pytest.mark.parametrize("name", ["acts a row later", "acts by a product", "two values", "no linear dependence"])
def test_a_shuffle_is_seen(name):
    """But for about one in ten: chance makes a dependence there."""
    record, rng = IN_ORDER[name], np.random.default_rng(0)
    orders = [rng.permutation(ROWS) for _ in range(20)]
    assert sum(look_shuffled([Series(record.u[rows], record.y[rows])]) for rows in orders) >= 14


def test_records_are_judged_together_where_they_are_long_enough():
    rows = np.random.default_rng(0).permutation(ROWS)
    parts = [Series(late(U)[part], U[part]) for part in np.split(rows, 10)]
    assert look_shuffled(parts) and not look_shuffled(parts[: (MIN_ROWS - 1) * 10 // ROWS])
    assert not look_shuffled([Series(U[part], late(U)[part]) for part in np.split(np.arange(ROWS), 4)])


def test_times_show_the_order():
    times = pd.DataFrame({"u": U, "y": V}, index=pd.date_range("2026-01-01", periods=ROWS, freq="s"))
    for record in (Series(times[["u"]], times[["y"]]), Series(U, V, time_name="t")):
        assert not look_shuffled([record])
    assert look_shuffled([Series(U, V)])


@pytest.mark.parametrize("name", datasets.names())
def test_the_data_sets_are_in_order(recorded_data, name):
    split = datasets.load(name)
    assert not any(look_shuffled([each]) for part in (split.train, split.test) for each in list_records(part))


def test_records_of_the_tests_are_in_order():
    assert not look_shuffled([small.record(samples=ROWS)])
