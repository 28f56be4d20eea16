"""Parts of long records."""

import numpy as np
import pytest

from revarb.data.series import Series
from revarb.training.parts import MAX_ROWS, PART_ROWS, cut_parts


def ramp(rows, begin=0.0):
    """A record whose values tell where they come from."""
    return Series(begin + np.arange(rows), -(begin + np.arange(rows)), 0.5, ["a"], ["b"])


@pytest.mark.parametrize("lengths", [[50], [MAX_ROWS], [MAX_ROWS // 2, MAX_ROWS // 2], [5, 1000, 20]])
def test_short_records_are_returned_unchanged(lengths):
    records = [ramp(length) for length in lengths]
    assert all(part is record for part, record in zip(cut_parts(records), records, strict=True))


@pytest.mark.parametrize("lengths", [[MAX_ROWS + 1], [10_000], [100_003], [3000, 40, 7000], [600] * 9])
def test_long_records_are_cut_into_parts_from_their_beginning_to_their_end(lengths):
    begins = np.cumsum([0, *lengths[:-1]])
    records = [ramp(length, float(begin)) for length, begin in zip(lengths, begins, strict=True)]
    parts = cut_parts(records)
    assert MAX_ROWS / 2 < sum(len(part) for part in parts) <= MAX_ROWS
    assert len(parts) >= 2 and min(len(part) for part in parts) >= min(PART_ROWS, *lengths)
    assert parts[0].u[0, 0] == 0.0 and parts[-1].u[-1, 0] == sum(lengths) - 1
    for part in parts:
        np.testing.assert_array_equal(np.diff(part.u[:, 0]), 1.0)  # rows that follow each other
        np.testing.assert_array_equal(part.y, -part.u)
        assert (part.dt, part.input_names, part.output_names) == (0.5, ("a",), ("b",))
        inside = [begin <= part.u[0, 0] and part.u[-1, 0] < begin + n for begin, n in zip(begins, lengths, strict=True)]
        assert any(inside)


def test_of_many_short_records_some_are_used_whole():
    records = [ramp(90, 90.0 * number) for number in range(100)]
    parts = cut_parts(records)
    assert {len(part) for part in parts} == {90} and sum(len(part) for part in parts) <= MAX_ROWS
    assert len({float(part.u[0, 0]) for part in parts}) == len(parts) == MAX_ROWS // 90


def test_parts_without_a_measured_output_are_left_out():
    record = ramp(6 * PART_ROWS)
    y = record.y.copy()
    y[PART_ROWS : 4 * PART_ROWS] = np.nan
    parts = cut_parts([Series(record.u, y)])
    assert len(parts) == 3 and not any(part.missing for part in parts)
