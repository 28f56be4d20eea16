"""Records: checks of arrays, names, sampling interval and missing values."""

import numpy as np
import pandas as pd
import pytest

import revarb
from revarb.data.series import Series, as_records
from revarb.errors import InputError


def test_vectors_become_columns_and_cannot_be_changed():
    series = Series([1, 2, 3], [4, 5, 6])
    assert series.u.shape == series.y.shape == (3, 1)
    assert series.u.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        series.y[0] = 1.0


def test_the_callers_array_is_not_shared():
    y = np.arange(4.0)
    series = Series(None, y)
    y[0] = 99.0
    assert series.y[0, 0] == 0.0
    assert series.u.shape == (4, 0)


@pytest.mark.parametrize(
    ("u", "y", "message"),
    [
        ([1, 2, 3], [1, 2], r"same number of rows: u has 3, y has 2"),
        ([1, np.nan, 3], [1, 2, 3], r"u has 1 value\(s\) that are not finite, the first \(nan\) in row 1, column 'u'"),
        ([1, 2], [1, np.inf], r"y has 1 value.*row 1"),
        (np.zeros((2, 2, 2)), [1, 2], r"u must be a vector or a matrix .*received shape \(2, 2, 2\)"),
        (["a", "b"], [1, 2], "u must be a table of real numbers, received <U1 values"),
        ([1, 2], np.empty((2, 0)), "y has no columns"),
    ],
)
def test_wrong_arrays_are_refused(u, y, message):
    with pytest.raises(InputError, match=message):
        Series(u, y)


def test_a_gap_in_the_inputs_is_refused_by_name():
    u = np.zeros((4, 2))
    u[2, 1] = np.nan
    with pytest.raises(InputError, match=r"u has 1 value.*\(nan\) in row 2, column 'fan'; remove or fill"):
        Series(u, np.zeros(4), input_names=["valve", "fan"])


@pytest.mark.parametrize(
    "y", [[1.0, np.nan, 3.0], [1, None, 3], np.ma.masked_array([1, 7, 3], mask=[False, True, False])]
)
def test_a_gap_in_the_outputs_is_kept(y):
    series = Series([1, 2, 3], y)
    np.testing.assert_array_equal(series.y, [[1.0], [np.nan], [3.0]])
    assert series.missing == 1 and "1 of 3 output values missing" in repr(series)
    assert "missing" not in repr(Series([1, 2], [1, 2]))


@pytest.mark.parametrize("dt", [0.0, -1.0, np.nan, np.inf])
def test_wrong_sampling_interval(dt):
    with pytest.raises(InputError, match="dt must be a finite number above 0"):
        Series([1, 2], [1, 2], dt=dt)


def test_names_are_kept_and_counted():
    series = Series(np.zeros((2, 2)), [1, 2], input_names=["valve", "fan"], output_names=["pressure"])
    assert series.input_names == ("valve", "fan")
    assert Series(np.zeros((2, 2)), [1, 2]).input_names == ("u0", "u1")
    with pytest.raises(InputError, match="needs a list of as many names"):
        Series(np.zeros((2, 2)), [1, 2], input_names=["valve"])


def test_records_must_agree():
    one, two = Series([1, 2], [1, 2]), Series(np.zeros((2, 2)), [1, 2])
    with pytest.raises(InputError, match="records must agree in input_names"):
        as_records([one, two])
    with pytest.raises(InputError, match="records must agree in dt"):
        as_records([one, Series([1, 2], [1, 2], dt=0.5)])
    with pytest.raises(InputError, match="no record was given"):
        as_records([])


def test_names_are_unique():
    with pytest.raises(InputError, match="column 'a' is named twice in u"):
        Series(np.zeros((2, 2)), [1, 2], input_names=["a", "a"])
    with pytest.raises(InputError, match="column 'a' is named as an input and as an output"):
        Series([1, 2], [1, 2], input_names=["a"], output_names=["a"])


def test_nan_in_the_inputs_is_refused_by_place():
    with pytest.raises(revarb.InputError, match=r"in row 2, column 'u'"):
        Series([0.0, 1.0, np.nan], [0.0, 1.0, 2.0])


def test_a_slice_of_rows_is_a_record_again():
    record = Series([0.0, 1.0, 2.0, 3.0], [0.1, np.nan, 0.3, 0.4], 0.5, ["valve"], ["level"])
    part = record[1:3]
    assert isinstance(part, Series) and (part.input_names, part.output_names, part.dt) == (("valve",), ("level",), 0.5)
    np.testing.assert_array_equal(part.u[:, 0], [1.0, 2.0])
    assert part.missing == 1 and len(record[2:]) == 2


def test_a_slice_of_a_frame_keeps_its_labels():
    frame = pd.DataFrame({"u": [0.0, 1.0, 2.0], "y": [1.0, 2.0, 3.0]}, index=[10, 20, 30])
    part = Series(frame[["u"]], frame[["y"]])[1:]
    assert list(part.index.labels) == [20, 30]


@pytest.mark.parametrize("rows", [2, slice(None, None, 2), slice(None, None, -1), [0, 1]])
def test_other_selections_of_rows_are_refused(rows):
    with pytest.raises(InputError, match="a record is cut by a slice of consecutive rows"):
        Series([0.0, 1.0, 2.0], [0.1, 0.2, 0.3])[rows]
