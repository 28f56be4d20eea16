"""Parts of long records."""

import numpy as np
import pytest

from revarb.data.series import Series
from revarb.training.candidates import limit_lags
from revarb.training.parts import MAX_ROWS, PART_ROWS, cut_parts


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
