"""Data frames in and out: names, row labels, missing values, and the same library on both sides."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from revarb.analysis.comparison import compare
from revarb.analysis.scores import scores
from revarb.baselines import ARX
from revarb.data import dataframes
from revarb.data.dataframes import as_matrix
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from support import small

TIMES = pd.date_range("2026-01-01", periods=4, freq="s")
FRAME = pd.DataFrame({"valve": [1, 0, 1, 0], "level": [0.1, 0.2, None, 0.4]}, index=TIMES)


@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME)], ids=["pandas", "polars"])
def test_a_record_keeps_names_and_missing_values_and_a_path_returns_them(frame):
    record = Series(frame[["valve"]], frame["level"])
    assert (record.input_names, record.output_names) == (("valve",), ("level",))
    np.testing.assert_array_equal(record.u[:, 0], [1.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(record.y[:, 0], [0.1, 0.2, np.nan, 0.4])
    assert Series(frame[["valve"]], frame["level"], output_names=["height"]).output_names == ("height",)
    zeros = np.zeros((4, 1))
    path = Trajectory(zeros, zeros, "moments", 0, ("level",), index=dataframes.row_index(frame)).to_frame()
    assert type(path) is type(frame)
    assert list(path.columns) == ["level_mean", "level_std", "level_lower", "level_upper"]


def test_columns_of_other_kinds():
    assert Series(None, pd.DataFrame(np.zeros((3, 2)))).output_names == ("y0", "y1")
    nullable = pd.DataFrame({"level": pd.array([1, None, 3], dtype="Int64")})
    np.testing.assert_array_equal(as_matrix("y", nullable, gaps=True)[:, 0], [1.0, np.nan, 3.0])
    record = Series(pd.DataFrame({"a": np.array([1, 2.5], dtype=object)}), [1, 2])
    np.testing.assert_array_equal(record.u[:, 0], [1.0, 2.5])
    assert Series([1, 2], [1, 2], input_names=pd.Index(["a"])).input_names == ("a",)


def test_every_model_returns_the_row_labels_of_its_inputs():
    record = small.record()
    model = ARX(lags=2, input_lags=2).fit(record)
    labels = pd.date_range("2026-01-01", periods=len(record), freq="s")
    u, y = (pd.Series(values[:, 0], index=labels, name=name) for name, values in (("u", record.u), ("y", record.y)))
    for path in (model.simulate(u.to_frame()), model.predict(Series(u, y))):
        pd.testing.assert_index_equal(path.to_frame().index, labels)
    assert isinstance(model.simulate(record.u).to_frame(), pd.DataFrame)  # of arrays: the first installed library


def test_columns_are_matched_by_name():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    frame["z"] = 0.3 * frame["a"].shift(1, fill_value=0.0) - frame["b"].shift(1, fill_value=0.0)
    model = ARX(2, 2).fit(Series(frame[["a", "b"]], frame["z"]))
    expected = model.simulate(frame[["a", "b"]])
    for other in (frame[["b", "a"]], frame, pl.from_pandas(frame)[["b", "z", "a"]], frame[["a", "b"]].to_numpy()):
        np.testing.assert_array_equal(model.simulate(other).mean, expected.mean)
    assert scores(expected, frame) == scores(expected, frame["z"])
    arrays = Series(frame[["a", "b"]].to_numpy(), frame["z"].to_numpy())
    model.predict(arrays)  # arrays count by position, and frames do for a model of arrays
    of_arrays = ARX(2, 2).fit(arrays).simulate(frame[["a", "b"]].set_axis(["c", "d"], axis=1))
    np.testing.assert_allclose(of_arrays.mean, expected.mean, rtol=1e-10)


def series(times, **options):
    """A record with times as row labels."""
    rows = np.arange(len(times))
    frame = pd.DataFrame({"u": np.sin(rows**1.5), "y": rows % 7.0 + np.sqrt(rows)}, index=times)
    return Series(frame[["u"]], frame[["y"]], **options)


@pytest.mark.parametrize(
    "times",
    [
        pd.date_range("2026-01-01", periods=30, freq="4s"),
        pd.date_range("2026-03-29", periods=30, freq="4s", tz="Europe/Berlin"),
        pd.timedelta_range("0s", periods=30, freq="4s"),
        pd.Index(pd.array(pd.date_range("2026-01-01", periods=30, freq="4s"), dtype="timestamp[ns][pyarrow]")),
    ],
)
def test_times_give_the_sampling_interval(times):
    assert series(times).dt == series(times, dt=4.0).dt == 4.0
    assert series(np.arange(30) * 2.0).dt == 1.0  # labels that are no times


def test_jitter_of_row_labels_is_accepted_with_a_warning():
    seconds = 4.0 * np.arange(30.0)
    seconds[7] += 0.1
    with pytest.warns(UserWarning, match=r"the row labels of u and y are not quite even: steps differ by up to 2.5%"):
        assert series(pd.to_timedelta(seconds, unit="s")).dt == pytest.approx(4.0)


def test_records_of_one_interval_agree_whatever_their_lengths():
    """0.1 s is not 0.1 after a division by the number of rows."""
    records = [series(pd.date_range("2026-01-01", periods=rows, freq="100ms")) for rows in (101, 137)]
    assert len({record.dt for record in records}) == 2
    ARX(lags=2, input_lags=2).fit(records)
    compare(*records, {"ARX": ARX(2, 2)}, seeds=1)
