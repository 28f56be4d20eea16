"""Records: arrays, names, missing values and slices; what is refused is in test_refusals.py."""

import numpy as np
import pandas as pd
import pytest

from revarb.data.series import Series


def test_vectors_become_columns_which_are_copies_and_read_only():
    y = np.arange(4.0)
    series, alone = Series([1, 2, 3, 4], y), Series(None, y)
    assert series.u.shape == series.y.shape == (4, 1) and series.u.dtype == np.float64 and alone.u.shape == (4, 0)
    with pytest.raises(ValueError, match="read-only"):
        series.y[0] = 1.0
    y[0] = 99.0
    assert series.y[0, 0] == 0.0


@pytest.mark.parametrize(
    "y", [[1.0, np.nan, 3.0], [1, None, 3], np.ma.masked_array([1, 7, 3], mask=[False, True, False])]
)
def test_a_gap_in_the_outputs_is_kept(y):
    series = Series([1, 2, 3], y)
    np.testing.assert_array_equal(series.y, [[1.0], [np.nan], [3.0]])
    assert series.missing == 1 and "1 of 3 output values missing" in repr(series)
    assert "missing" not in repr(Series([1, 2], [1, 2]))


def test_a_slice_of_rows_is_a_record_again():
    record = Series([0.0, 1.0, 2.0, 3.0], [0.1, np.nan, 0.3, 0.4], 0.5, ["valve"], ["level"])
    part = record[1:3]
    assert isinstance(part, Series) and (part.input_names, part.output_names, part.dt) == (("valve",), ("level",), 0.5)
    np.testing.assert_array_equal(part.u[:, 0], [1.0, 2.0])
    assert part.missing == 1 and len(record[2:]) == 2
    frame = pd.DataFrame({"u": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 3.0]}, index=[10, 20, 30])
    assert list(Series(frame[["u"]], frame[["y"]])[1:].index.labels) == [20, 30]
