"""Records as a fit takes them: short records in place of long ones, and outliers by their neighbours in time."""

from itertools import pairwise

import numpy as np
import pytest

from revarb.data.series import Series
from revarb.data.training_records import (
    LEAST_WINDOWS,
    LENGTH,
    PER_RECORD,
    mark_outliers,
    mask_outliers,
    shorten_records,
)
from revarb.data.windows import Order
from support import small

ORDER = Order(3, 4, 1)


def ramp(samples, begin=0.0):
    """A record whose values tell where they come from."""
    return Series(begin + np.arange(samples), -(begin + np.arange(samples)), 0.5, ["a"], ["b"])


@pytest.mark.parametrize(("lengths", "limit"), [([5000], 5000), ([10], 5000), ([900, 100], 1000), ([9000], None)])
def test_records_within_the_limit_are_returned_unchanged(lengths, limit):
    records = [ramp(length) for length in lengths]
    short = shorten_records(records, ORDER, limit)
    assert all(part is record for part, record in zip(short.records, records, strict=True))
    assert short.last == tuple(range(len(lengths)))


@pytest.mark.parametrize("samples", [5001, 5499, 7000, 100_000, 123_456])
def test_a_long_record_becomes_evenly_spread_short_ones(samples):
    short = shorten_records([ramp(samples)], ORDER, 5000)
    begins = [int(part.u[0, 0]) for part in short.records]
    assert {len(part) for part in short.records} == {LENGTH} and len(begins) == 10
    assert begins[0] < LENGTH and short.records[-1].u[-1, 0] == samples - 1
    steps = np.diff(begins)
    assert steps.min() >= LENGTH and np.ptp(steps) <= LENGTH
    for part in short.records:
        np.testing.assert_array_equal(np.diff(part.u[:, 0]), 1.0)
        np.testing.assert_array_equal(part.y, -part.u)
        assert (part.dt, part.input_names, part.output_names) == (0.5, ("a",), ("b",))


@pytest.mark.parametrize("lengths", [[3000, 40, 7000], [60_000, 40_000], [900] * 12, [2000, 2000, 2000, 10]])
def test_every_record_is_represented_up_to_its_end(lengths):
    records = [ramp(length, float(begin)) for length, begin in zip(lengths, np.cumsum([0, *lengths]), strict=False)]
    short = shorten_records(records, ORDER, 4000)
    assert 3200 <= sum(len(part) for part in short.records) <= 4800
    assert [short.records[number].u[-1, 0] for number in short.last] == [record.u[-1, 0] for record in records]
    starts = [part.u[0, 0] for part in short.records]
    assert starts == sorted(starts)
    for (first, end), record in zip(pairwise([-1, *short.last]), records, strict=True):
        own = short.records[first + 1 : end + 1]
        assert len(own) >= PER_RECORD - 1 or sum(len(part) for part in own) >= len(record) // 2
        assert all(record.u[0, 0] <= part.u[0, 0] for part in own)


def test_short_records_have_at_least_a_few_windows():
    """Also where that is more than the limit: fewer rows cannot be fitted."""
    order = Order(40, 40, 1)
    short = shorten_records([ramp(1000, 1000.0 * number) for number in range(20)], order, 500)
    assert {len(part) for part in short.records} == {LEAST_WINDOWS * 40} and len(short.records) == 20
    long = shorten_records([ramp(50_000)], Order(300, 300, 1), 5000)
    assert {len(part) for part in long.records} == {1500} and len(long.records) == 3
    few, many = (shorten_records([ramp(20_010)], Order(lags, lags, 1), 5000).records for lags in (2, 20))
    assert [part.u[0, 0] for part in few] == [part.u[0, 0] for part in many]  # with fewer lags they do not matter


def test_those_without_a_measured_output_are_left_out_but_for_the_last():
    record = ramp(20_000)
    y = small.with_gaps(record, slice(3000, 9000), slice(19_000, None)).y.copy()
    *others, last = shorten_records([Series(record.u, y)], ORDER, 5000).records
    assert len(others) == 9 and not any(part.missing for part in others)
    assert last.u[-1, 0] == record.u[-1, 0] and last.missing == LENGTH
    y[50:] = np.nan  # only the first samples, which belong to no short record, are measured: the record is used whole
    [whole] = shorten_records([Series(record.u, y)[:5200]], ORDER, 2000).records
    assert len(whole) == 5200


@pytest.mark.parametrize("column", ["u", "y"])
def test_there_are_more_where_a_column_moves_elsewhere(column):
    record = ramp(30_000)
    used = {int(part.u[0, 0]) for part in shorten_records([record], ORDER, 5000).records}
    more = {int(part.u[0, 0]) for part in shorten_records([record], ORDER, 10_000).records}
    for others, short in ((more - used, 20), (set(range(0, 30_000, LENGTH)) - used - more, None)):
        moving = np.zeros((len(record), 1))
        begin = min(others)
        moving[begin + 100 : begin + 200] = 1.0
        columns = {"u": record.u, "y": record.y} | {column: np.column_stack([getattr(record, column), moving])}
        found = shorten_records([Series(**columns)], ORDER, 5000).records
        assert len(found) == short if short else len(found) > 20 or len(found[0]) == len(record)


def make_signal(samples=300, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    time = np.arange(samples)
    return np.sin(time / 7.0)[:, None] + noise * rng.normal(size=(samples, 1))


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_planted_outliers_are_found(share):
    rng, y = np.random.default_rng(1), make_signal()
    planted = rng.choice(len(y), int(share * len(y)), replace=False)
    y[planted, 0] += rng.choice([-1.0, 1.0], len(planted)) * rng.uniform(3.0, 6.0, len(planted)) * y.std()
    marks = mark_outliers([y])[0][:, 0]
    assert marks[planted].mean() >= 0.9 and np.delete(marks, planted).mean() <= 0.03


def test_the_neighbours_of_an_outlier_are_kept_and_units_do_not_matter():
    y = make_signal()
    assert not mark_outliers([y])[0].any()
    y[[40, 100]] += 5.0
    for values in (y, 1e6 * y - 4e5):
        assert np.flatnonzero(mark_outliers([values])[0]).tolist() == [40, 100]
    with_empty = mark_outliers([y, np.full((40, 1), np.nan)])  # a record without the output does not hide others
    assert np.flatnonzero(with_empty[0]).tolist() == [40, 100] and not with_empty[1].any()


def test_steps_and_records_without_information_have_none():
    steps = np.repeat([0.0, 1.0, -1.0, 2.0], 50)[:, None] + make_signal(200, 0.02) * 0.01
    for outputs in ([steps], [np.array([[0.0], [1.0]]), np.full((5, 1), 2.0)], [np.full((9, 1), np.nan)]):
        assert not mark_outliers(outputs)[0].any()


def test_outputs_and_records_are_apart_and_gaps_stay():
    first, second = np.hstack([make_signal(), make_signal(seed=1)]), np.hstack([make_signal(80), make_signal(80)])
    first[50, 1], first[20, 0] = 9.0, np.nan
    records = mask_outliers([Series(np.zeros((len(y), 0)), y) for y in (first, second)])
    assert np.argwhere(np.isnan(records[0].y)).tolist() == [[20, 0], [50, 1]]
    assert not np.isnan(records[1].y).any()
