"""Data frames in and out: names, row labels, missing values, and the same library on both sides."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from revarb.data import dataframes
from revarb.data.series import Series, as_matrix
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError
from support import small

TIMES = pd.date_range("2026-01-01", periods=4, freq="s")


def pandas_frame():
    return pd.DataFrame({"valve": [1, 0, 1, 0], "level": [0.1, 0.2, None, 0.4]}, index=TIMES)


@pytest.mark.parametrize("make", [pandas_frame, lambda: pl.from_pandas(pandas_frame())], ids=["pandas", "polars"])
def test_a_record_keeps_names_and_missing_values(make):
    frame = make()
    record = Series(frame[["valve"]], frame["level"])
    assert (record.input_names, record.output_names) == (("valve",), ("level",))
    np.testing.assert_array_equal(record.u[:, 0], [1.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(record.y[:, 0], [0.1, 0.2, np.nan, 0.4])


def test_given_names_come_before_those_of_the_frame():
    frame = pandas_frame()
    assert Series(frame[["valve"]], frame["level"], output_names=["height"]).output_names == ("height",)


def test_columns_without_text_names_get_default_names():
    assert Series(None, pd.DataFrame(np.zeros((3, 2)))).output_names == ("y0", "y1")


def test_nullable_integers_are_numbers():
    values = pd.DataFrame({"level": pd.array([1, None, 3], dtype="Int64")})
    np.testing.assert_array_equal(as_matrix("y", values, gaps=True)[:, 0], [1.0, np.nan, 3.0])


def test_a_column_of_texts_is_refused_by_name():
    with pytest.raises(InputError, match="u must be a table of numbers, but its column 'mode' holds String"):
        Series(pl.DataFrame({"mode": ["on", "off"]}), [1.0, 2.0])


def test_missing_inputs_are_refused_with_their_column():
    with pytest.raises(InputError, match="row 1, column 'valve'"):
        Series(pd.DataFrame({"valve": [1.0, None]}), [1.0, 2.0])


def path(index=None):
    return Trajectory(np.zeros((4, 1)), np.ones((4, 1)), "moments", 0, ("level",), index=index)


def test_a_path_comes_back_as_the_frame_of_its_inputs():
    for frame in (pandas_frame(), pl.from_pandas(pandas_frame())):
        result = path(dataframes.row_index(frame)).to_frame()
        assert type(result) is type(frame)
        assert list(result.columns) == ["level_mean", "level_std", "level_lower", "level_upper"]
    pd.testing.assert_index_equal(path(dataframes.row_index(pandas_frame())).to_frame().index, TIMES)


def test_arrays_give_a_frame_of_the_first_installed_library():
    assert isinstance(path().to_frame(), pd.DataFrame)


def test_without_any_library_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(dataframes, "DEFAULT_BACKENDS", ("no_such_library",))
    with pytest.raises(InputError, match=r"pip install \"revarb\[pandas\]\""):
        path().to_frame()


def test_every_model_returns_the_row_labels_of_its_inputs():
    record = small.record()
    model = small.spec(hidden=1).fit(record)
    labels = pd.date_range("2026-01-01", periods=len(record), freq="min")
    frame = model.simulate(pd.DataFrame(record.u, columns=["u"], index=labels)).to_frame()
    pd.testing.assert_index_equal(frame.index, labels)
    measured = Series(
        pd.Series(record.u[:, 0], index=labels, name="u"), pd.Series(record.y[:, 0], index=labels, name="y")
    )
    pd.testing.assert_index_equal(model.predict(measured).to_frame().index, labels)
