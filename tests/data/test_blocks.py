"""Blocks of consecutive rows in place of long records."""

from itertools import pairwise

import numpy as np
import pytest

from revarb.data.blocks import LEAST_WINDOWS, LENGTH, PER_RECORD, cut_blocks
from revarb.data.series import Series
from revarb.data.windows import Order

ORDER = Order(3, 4, 1)


def ramp(samples, begin=0.0):
    """A record whose values tell where they come from."""
    return Series(begin + np.arange(samples), -(begin + np.arange(samples)), 0.5, ["a"], ["b"])


@pytest.mark.parametrize(("lengths", "limit"), [([5000], 5000), ([10], 5000), ([900, 100], 1000), ([9000], None)])
def test_records_within_the_limit_are_returned_unchanged(lengths, limit):
    records = [ramp(length) for length in lengths]
    blocks = cut_blocks(records, ORDER, limit)
    assert all(block is record for block, record in zip(blocks.records, records, strict=True))
    assert blocks.last == tuple(range(len(lengths)))


@pytest.mark.parametrize("samples", [5001, 5499, 7000, 100_000, 123_456])
def test_a_long_record_becomes_evenly_spread_blocks(samples):
    blocks = cut_blocks([ramp(samples)], ORDER, 5000)
    begins = [int(block.u[0, 0]) for block in blocks.records]
    assert {len(block) for block in blocks.records} == {LENGTH} and len(begins) == 10
    assert begins[0] < LENGTH and blocks.records[-1].u[-1, 0] == samples - 1
    steps = np.diff(begins)
    assert steps.min() >= LENGTH and np.ptp(steps) <= LENGTH
    for block in blocks.records:
        np.testing.assert_array_equal(np.diff(block.u[:, 0]), 1.0)
        np.testing.assert_array_equal(block.y, -block.u)
        assert (block.dt, block.input_names, block.output_names) == (0.5, ("a",), ("b",))


@pytest.mark.parametrize("lengths", [[3000, 40, 7000], [60_000, 40_000], [900] * 12, [2000, 2000, 2000, 10]])
def test_every_record_has_blocks_up_to_its_end(lengths):
    begins = np.cumsum([0, *lengths])
    records = [ramp(length, float(begin)) for length, begin in zip(lengths, begins, strict=False)]
    limit = 4000
    blocks = cut_blocks(records, ORDER, limit)
    assert 0.8 * limit <= sum(len(block) for block in blocks.records) <= 1.2 * limit
    assert [blocks.records[number].u[-1, 0] for number in blocks.last] == [record.u[-1, 0] for record in records]
    starts = [block.u[0, 0] for block in blocks.records]
    assert starts == sorted(starts)
    for (first, end), record in zip(pairwise([-1, *blocks.last]), records, strict=True):
        own = blocks.records[first + 1 : end + 1]
        assert len(own) >= PER_RECORD - 1 or sum(len(block) for block in own) >= len(record) // 2
        assert all(record.u[0, 0] <= block.u[0, 0] for block in own)


def test_blocks_are_longer_than_a_few_windows():
    """Also where that is more than the limit: fewer rows cannot be fitted."""
    order = Order(40, 40, 1)
    blocks = cut_blocks([ramp(1000, 1000.0 * number) for number in range(20)], order, 500)
    assert {len(block) for block in blocks.records} == {LEAST_WINDOWS * 40} and len(blocks.records) == 20
    long = cut_blocks([ramp(50_000)], Order(300, 300, 1), 5000)
    assert {len(block) for block in long.records} == {1500} and len(long.records) == 3


def test_blocks_do_not_depend_on_the_lags():
    records = [ramp(20_010), ramp(9_000, 1e5)]
    few, many = (cut_blocks(records, Order(lags, lags, 1), 5000).records for lags in (2, 20))
    assert [block.u[0, 0] for block in few] == [block.u[0, 0] for block in many]


def test_blocks_without_a_measured_output_are_left_out_but_for_the_last():
    record = ramp(20_000)
    y = record.y.copy()
    y[3000:9000] = np.nan
    y[19_000:] = np.nan
    *others, last = cut_blocks([Series(record.u, y)], ORDER, 5000).records
    assert len(others) == 9 and not any(block.missing for block in others)
    assert last.u[-1, 0] == record.u[-1, 0] and last.missing == LENGTH


@pytest.mark.parametrize("column", ["u", "y"])
def test_there_are_more_blocks_where_a_column_moves_elsewhere(column):
    record = ramp(30_000)
    used = {int(block.u[0, 0]) for block in cut_blocks([record], ORDER, 5000).records}
    more = {int(block.u[0, 0]) for block in cut_blocks([record], ORDER, 10_000).records}
    for others, blocks in ((more - used, 20), (set(range(0, 30_000, LENGTH)) - used - more, None)):
        moving = np.zeros((len(record), 1))
        begin = min(others)
        moving[begin + 100 : begin + 200] = 1.0
        u = np.column_stack([record.u, moving]) if column == "u" else record.u
        y = np.column_stack([record.y, moving]) if column == "y" else record.y
        found = cut_blocks([Series(u, y)], ORDER, 5000).records
        assert len(found) == blocks if blocks else len(found) > 20 or len(found[0]) == len(record)


def test_records_without_any_measured_block_are_used_whole():
    """Only the samples at the beginning of the record, which belong to no block, are measured."""
    record = ramp(5200)
    y = np.full_like(record.y, np.nan)
    y[:50] = record.y[:50]
    [whole] = cut_blocks([Series(record.u, y)], ORDER, 2000).records
    assert len(whole) == len(record)
