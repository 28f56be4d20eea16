"""The records of a choice: their lags, those that are too short, parts of long ones, and what is held out."""

import numpy as np
import pytest

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import Order
from revarb.fitting.held_out import FOLDS, cut_held_out_blocks
from revarb.selection.records import (
    FEW_LAGS,
    LAGS,
    MAX_ROWS,
    MORE_LAGS,
    PART_ROWS,
    RECORD_ROWS_PER_LAG,
    ROWS_PER_LAG,
    cut_parts,
    hold_out_blocks,
    leave_out_short,
    limit_lags,
)
from support import small

ROWS = RECORD_ROWS_PER_LAG * MORE_LAGS


@pytest.mark.parametrize(
    ("lengths", "most", "expected"),
    [
        ([ROWS_PER_LAG * MORE_LAGS], MORE_LAGS, MORE_LAGS),
        ([ROWS_PER_LAG * MORE_LAGS], FEW_LAGS, FEW_LAGS),
        ([3 * ROWS_PER_LAG + 1], MORE_LAGS, 3),
        ([4], LAGS, 1),
        ([ROWS] * 3, MORE_LAGS, MORE_LAGS),
        ([ROWS, ROWS, ROWS - 1], MORE_LAGS, MORE_LAGS - 1),  # a third in a short one
        ([ROWS, ROWS], MORE_LAGS, 2 * ROWS // ROWS_PER_LAG),
        ([4 * ROWS, ROWS - 1], MORE_LAGS, MORE_LAGS),  # 80 % of the rows
        ([4 * ROWS, ROWS + 1], MORE_LAGS, MORE_LAGS),
    ],
)
def test_lags_are_limited_by_the_records(lengths, most, expected):
    """All records together have 12 rows per lag, and those with most of the rows 4 each."""
    assert limit_lags(make_records(*lengths), most) == expected


def make_records(*lengths):
    return [small.record(number, samples=length) for number, length in enumerate(lengths)]


@pytest.mark.parametrize(
    ("lengths", "said"), [([1500, 20], "^1 of 2 records have fewer than 120 samples and are left out; RGP"),
                          ([140, 30, 9], "^2 of 3 records have fewer than")],
)  # fmt: skip
def test_a_short_record_is_left_out_with_a_warning(lengths, said):
    records = make_records(*lengths)
    with pytest.warns(UserWarning, match=said) as seen:
        kept = leave_out_short(records)
    assert len(seen) == 1 and kept == (records[0],)
    assert min(len(record) for record in kept) >= RECORD_ROWS_PER_LAG * limit_lags(kept, MORE_LAGS)


@pytest.mark.parametrize("lengths", [[1500], [300, 80], [60] * 4, [40] * 30, [9], [2, 2]])
def test_records_that_are_all_long_enough_or_all_too_short_stay(lengths, recwarn):
    records = make_records(*lengths)
    assert leave_out_short(records) == tuple(records) and len(recwarn) == 0


def ramp(rows, begin=0.0):
    """A record whose values tell where they come from."""
    return Series(begin + np.arange(rows), -(begin + np.arange(rows)), 0.5, ["a"], ["b"])


@pytest.mark.parametrize("lengths", [[50], [MAX_ROWS], [MAX_ROWS // 2, MAX_ROWS // 2], [5, 1000, 20]])
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
    assert starts == sorted(starts) and starts[0] == 0.0 and starts[-1] >= 0.7 * (sum(lengths) - PART_ROWS)
    for part in parts:
        np.testing.assert_array_equal(np.diff(part.u[:, 0]), 1.0)  # rows that follow each other
        np.testing.assert_array_equal(part.y, -part.u)
        assert (part.dt, part.input_names, part.output_names) == (0.5, ("a",), ("b",))
        inside = [begin <= part.u[0, 0] and part.u[-1, 0] < begin + n for begin, n in zip(begins, lengths, strict=True)]
        assert any(inside)


def test_of_many_short_records_some_are_used_whole():
    records = [ramp(90, 90.0 * number) for number in range(100)]
    parts = cut_parts(records)
    assert {len(part) for part in parts} == {90}
    assert len({float(part.u[0, 0]) for part in parts}) == len(parts) == MAX_ROWS // 90 + 1
    thirds = np.bincount([int(part.u[0, 0]) // 3000 for part in parts])
    assert thirds.min() >= len(parts) // 4  # from everywhere


def test_one_long_record_does_not_make_the_parts_few():
    records = [ramp(length, 1000.0 * number) for number, length in enumerate([40] * 100 + [999])]
    parts = cut_parts(records)
    assert MAX_ROWS <= sum(len(part) for part in parts) < MAX_ROWS + 999
    assert sum(len(part) == 40 for part in parts) >= 20
    assert limit_lags(parts, 20) == limit_lags(records, 20) == 6


@pytest.mark.parametrize("column", ["u", "y"])
def test_where_a_column_moves_only_outside_of_the_parts_all_records_are_used(column):
    record = ramp(20 * PART_ROWS)
    begins = {int(part.u[0, 0]) for part in cut_parts([record])}
    other = next(begin for begin in range(0, len(record), PART_ROWS) if begin not in begins)
    moving = np.zeros((len(record), 1))
    moving[other + 10 : other + 20] = 1.0
    u = np.column_stack([record.u, moving]) if column == "u" else record.u
    y = np.column_stack([record.y, moving]) if column == "y" else record.y
    [whole] = cut_parts([Series(u, y)])
    assert len(whole) == len(record)


def test_parts_without_a_measured_output_are_left_out():
    record = ramp(6 * PART_ROWS)
    y = record.y.copy()
    y[PART_ROWS : 4 * PART_ROWS] = np.nan
    parts = cut_parts([Series(record.u, y)])
    assert len(parts) == 3 and not any(part.missing for part in parts)


# What is held out ----------------------------------------------------------------------------------------------------


def test_something_is_held_out_of_three_records_of_60_samples():
    records = make_records(60, 60, 60)
    lags = limit_lags(records, MORE_LAGS)
    assert hold_out_blocks(records, Order(lags, lags, 1)) is not None


def test_too_few_blocks_or_a_fold_that_leaves_too_little_hold_nothing_out():
    record, order = small.record(samples=120), Order(1, 1, 1)
    blocks = cut_held_out_blocks([record], Preprocessor.from_records([record], order))
    assert hold_out_blocks([record], order).blocks == tuple(blocks)
    for kept, enough in ((FOLDS - 1, False), (FOLDS, True)):  # blocks with any measured output
        y = record.y.copy()
        y[blocks[kept].begin :] = np.nan
        assert (hold_out_blocks([Series(record.u, y)], order) is not None) is enough
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


def test_the_window_of_inputs_must_be_full_where_the_first_block_begins():
    assert hold_out_blocks(make_records(240), Order(2, 100, 1)) is not None
    assert hold_out_blocks(make_records(240), Order(2, 125, 1)) is None
