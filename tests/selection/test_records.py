"""The records of a choice: their lags, those that are too short, parts of long ones, and what is held out."""

import numpy as np
import pytest

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.fitting.held_out import FOLDS, cut_held_out_blocks
from revarb.selection.records import (
    ASIDE_BLOCKS,
    ASIDE_ROWS,
    FEW_LAGS,
    LAGS,
    LONG_ROWS,
    MAX_ROWS,
    MORE_LAGS,
    PART_ROWS,
    RECORD_ROWS_PER_LAG,
    ROWS_PER_LAG,
    cut_parts,
    hold_out_blocks,
    leave_out_short,
    limit_lags,
    set_aside,
)
from support import small


def test_lags_are_limited_by_the_records():
    """All records together have 12 rows per lag, and those with most of the rows 6 each."""
    long, rows = ROWS_PER_LAG * MORE_LAGS, RECORD_ROWS_PER_LAG * MORE_LAGS
    assert limit_lags(make_records(long), MORE_LAGS) == MORE_LAGS
    assert limit_lags(make_records(long), FEW_LAGS) == FEW_LAGS
    assert limit_lags(make_records(3 * ROWS_PER_LAG + 1), MORE_LAGS) == 3 and limit_lags(make_records(4), LAGS) == 1
    assert limit_lags(make_records(*[rows] * 3), MORE_LAGS) == MORE_LAGS
    assert limit_lags(make_records(rows, rows, rows - 1), MORE_LAGS) == MORE_LAGS - 1  # a third in a short one
    assert limit_lags(make_records(rows, rows), MORE_LAGS) == 2 * rows // ROWS_PER_LAG
    assert limit_lags(make_records(4 * rows, rows - 1), MORE_LAGS) == MORE_LAGS  # 80 % of the rows


def make_records(*lengths):
    return [small.record(number, samples=length) for number, length in enumerate(lengths)]


@pytest.mark.parametrize(("lengths", "said"), [([1500, 20], "1 of 2 .* than 120 samples"), ([140, 30, 9], "2 of 3")])
def test_a_short_record_is_left_out_with_a_warning(lengths, said):
    records = make_records(*lengths)
    with pytest.warns(UserWarning, match=f"^{said}.* are left out; RGP") as seen:
        assert leave_out_short(records) == (records[0],)
    assert len(seen) == 1 and len(records[0]) >= RECORD_ROWS_PER_LAG * limit_lags(records[:1], MORE_LAGS)


@pytest.mark.parametrize("lengths", [[1500], [300, 80], [60] * 4, [40] * 30, [9], [2, 2]])
def test_records_that_are_all_long_enough_or_all_too_short_stay(lengths, recwarn):
    records = make_records(*lengths)
    assert leave_out_short(records) == tuple(records) and len(recwarn) == 0


def ramp(rows, begin=0.0):
    """A record whose values tell where they come from."""
    return Series(begin + np.arange(rows), -(begin + np.arange(rows)), 0.5, ["a"], ["b"])


@pytest.mark.parametrize("lengths", [[50], [MAX_ROWS], [MAX_ROWS // 2, MAX_ROWS // 2], [5, 600, 20]])
def test_short_records_are_returned_unchanged(lengths):
    records = [ramp(length) for length in lengths]
    assert all(part is record for part, record in zip(cut_parts(records), records, strict=True))


@pytest.mark.parametrize("lengths", [[MAX_ROWS + 1], [10_000], [100_003], [3000, 40, 7000], [600] * 9])
def test_long_records_are_cut_into_spread_parts(lengths):
    begins = np.cumsum([0, *lengths[:-1]])
    records = [ramp(length, float(begin)) for length, begin in zip(lengths, begins, strict=True)]
    parts = cut_parts(records)
    rows = sum(len(part) for part in parts)
    assert MAX_ROWS <= rows < MAX_ROWS + max(len(part) for part in parts)
    assert len(parts) >= 2 and min(len(part) for part in parts) >= min(PART_ROWS, *lengths)
    starts = [part.u[0, 0] for part in parts]
    assert starts == sorted(starts) and starts[0] == 0.0 and starts[-1] >= 0.4 * (sum(lengths) - PART_ROWS)
    for part in parts:
        np.testing.assert_array_equal(np.diff(part.u[:, 0]), 1.0)  # rows that follow each other
        np.testing.assert_array_equal(part.y, -part.u)
        assert (part.dt, part.input_names, part.output_names) == (0.5, ("a",), ("b",))
        inside = [begin <= part.u[0, 0] and part.u[-1, 0] < begin + n for begin, n in zip(begins, lengths, strict=True)]
        assert any(inside)


def test_of_many_short_records_some_are_used_whole():
    parts = cut_parts([ramp(90, 90.0 * number) for number in range(100)])
    assert {len(part) for part in parts} == {90}
    assert len({float(part.u[0, 0]) for part in parts}) == len(parts) == MAX_ROWS // 90 + 1
    records = [ramp(length, 1000.0 * number) for number, length in enumerate([40] * 100 + [999])]
    parts = cut_parts(records)  # one long record does not make them few
    assert MAX_ROWS <= sum(len(part) for part in parts) < MAX_ROWS + 999
    assert sum(len(part) == 40 for part in parts) >= 15
    assert limit_lags(parts, 20) == limit_lags(records, 20) == 6


@pytest.mark.parametrize("column", ["u", "y"])
def test_where_a_column_moves_only_outside_of_the_parts_all_records_are_used(column):
    record = ramp(20 * PART_ROWS)
    begins = {int(part.u[0, 0]) for part in cut_parts([record])}
    other = next(begin for begin in range(0, len(record), PART_ROWS) if begin not in begins)
    moving = np.zeros((len(record), 1))
    moving[other + 10 : other + 20] = 1.0
    columns = {"u": record.u, "y": record.y}
    columns[column] = np.column_stack([columns[column], moving])
    [whole] = cut_parts([Series(**columns)])
    assert len(whole) == len(record)


def test_parts_without_a_measured_output_are_left_out():
    parts = cut_parts([small.with_gaps(ramp(6 * PART_ROWS), slice(0, 4 * PART_ROWS))])
    assert len(parts) == 2 and not any(part.missing for part in parts)


@pytest.mark.parametrize(("lags", "full"), [(100, True), (125, False)])
def test_the_window_of_inputs_must_be_full_where_the_first_block_begins(lags, full):
    assert (hold_out_blocks(make_records(240), Order(2, lags, 1)) is not None) is full


def test_too_few_blocks_or_a_fold_that_leaves_too_little_hold_nothing_out():
    record, order = small.record(samples=120), Order(1, 1, 1)
    blocks = cut_held_out_blocks([record], Preprocessor.from_records([record], order))
    assert hold_out_blocks([record], order).blocks == tuple(blocks)
    for kept, enough in ((FOLDS - 1, False), (FOLDS, True)):  # blocks with any measured output
        gap = small.with_gaps(record, slice(blocks[kept].begin, None))
        assert (hold_out_blocks([gap], order) is not None) is enough
    y = np.zeros(120)
    y[blocks[5].rows] = record.y[blocks[5].rows, 0]  # constant without this block
    assert hold_out_blocks([Series(record.u, y)], order) is None


def test_measured_blocks_are_assigned_to_the_folds_in_turn():
    record, order = small.record(samples=150), Order(2, 2, 1)
    blocks = hold_out_blocks([record], order).blocks
    gap = small.with_gaps(record, *(block.rows for block in blocks if block.fold == 0))
    found = hold_out_blocks([gap], order).blocks
    assert [block.rows for block in found] == [block.rows for block in blocks if block.fold != 0]
    assert [block.fold for block in found] == [number % FOLDS for number in range(len(found))]


def test_blocks_of_long_records_are_set_aside():
    records = [ramp(2000), ramp(4000, 1e4)]
    masked, aside = set_aside(records, Order(5, 5, 1))
    hidden = [np.isnan(record.y).all(axis=1) for record in masked]
    assert len(aside.runs) == ASIDE_BLOCKS and sum(map(np.sum, hidden)) == ASIDE_BLOCKS * ASIDE_ROWS
    assert [mask.sum() // ASIDE_ROWS for mask in hidden] == [4, 8]  # in proportion to their lengths
    values = np.concatenate([record.y[mask] for record, mask in zip(records, hidden, strict=True)])
    np.testing.assert_array_equal(np.concatenate([run.y for run in aside.runs]), values)
    assert [run.first for run in aside.runs[:2]] == [100, ASIDE_ROWS]  # less before the first one of a record
    for record, each in zip(records, masked, strict=True):
        np.testing.assert_array_equal(each.u, record.u)


@pytest.mark.parametrize("lengths", [[LONG_ROWS], [350] * 15, [2000, 3000]])
def test_nothing_is_set_aside_of_short_records(lengths):
    records = [ramp(rows) for rows in lengths]
    same, aside = set_aside(records, Order(5, 5, 1))
    assert aside is None and same == tuple(records)
