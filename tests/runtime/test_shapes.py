"""The sizes that numbers of rows are rounded up to."""

import numpy as np
import pytest

from revarb.runtime.shapes import LONGEST, cut_rows, pad_rows, round_up_rows


def test_sizes_are_few_and_little_is_added():
    rows = np.arange(1, LONGEST + 1)
    sizes = np.array([round_up_rows(int(count)) for count in rows])
    assert (sizes >= rows).all() and (sizes - rows < rows / 8).all()
    assert (np.diff(sizes) >= 0).all()
    assert len(set(sizes)) == 16 + 8 * 10  # 1 … 16, then eight sizes for every doubling up to 2^14
    assert [round_up_rows(int(size)) for size in set(sizes)] == list(set(sizes))


@pytest.mark.parametrize("rows, size", [(0, 0), (1, 1), (17, 18), (200, 208), (205, 208), (LONGEST + 1, LONGEST + 1)])
def test_examples_of_sizes(rows, size):
    assert round_up_rows(rows) == size


def test_padded_rows_are_cut_off_again():
    values = np.arange(17 * 3.0).reshape(17, 3)
    padded = pad_rows(values, np.nan)
    assert padded.shape == (18, 3) and np.isnan(padded[17:]).all()
    np.testing.assert_array_equal(cut_rows(padded, 17), values)
    np.testing.assert_array_equal(cut_rows(padded.T, 17, axis=1), values.T)
