"""Data frames in and out: names, row labels, missing values, and the same library on both sides."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from revarb.baselines import ARX
from revarb.data import dataframes
from revarb.data.series import Series, as_matrix
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError
from revarb.evaluation.comparison import compare
from revarb.evaluation.scoring import scores
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
    model = ARX(lags=2, input_lags=2).fit(record)
    labels = pd.date_range("2026-01-01", periods=len(record), freq="s")
    frame = model.simulate(pd.DataFrame(record.u, columns=["u"], index=labels)).to_frame()
    pd.testing.assert_index_equal(frame.index, labels)
    measured = Series(
        pd.Series(record.u[:, 0], index=labels, name="u"), pd.Series(record.y[:, 0], index=labels, name="y")
    )
    pd.testing.assert_index_equal(model.predict(measured).to_frame().index, labels)


def named_model():
    """A model of the inputs a, b and the output z, and its training frame."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    frame["z"] = 0.3 * frame["a"].shift(1, fill_value=0.0) - frame["b"].shift(1, fill_value=0.0)
    return ARX(2, 2).fit(Series(frame[["a", "b"]], frame["z"])), frame


def test_columns_are_matched_by_name():
    model, frame = named_model()
    expected = model.simulate(frame[["a", "b"]])
    for other in (frame[["b", "a"]], frame, pl.from_pandas(frame)[["b", "z", "a"]]):
        np.testing.assert_array_equal(model.simulate(other).mean, expected.mean)
    assert scores(expected, frame) == scores(expected, frame["z"])
    np.testing.assert_array_equal(model.simulate(frame[["a", "b"]].to_numpy()).mean, expected.mean)


def test_other_columns_are_refused_by_name():
    model, frame = named_model()
    with pytest.raises(InputError, match=r"u has no column 'a'; its columns are \['c', 'b'\]"):
        model.simulate(frame[["a", "b"]].rename(columns={"a": "c"}))
    with pytest.raises(InputError, match="y has no column 'z'"):
        scores(model.simulate(frame), frame[["a"]])


def test_a_model_of_arrays_takes_frames_by_position():
    model = small.spec(hidden=1).fit(small.record())
    u = small.record().u
    np.testing.assert_array_equal(model.simulate(pd.DataFrame({"valve": u[:, 0]})).mean, model.simulate(u).mean)


@pytest.mark.parametrize(
    ("u", "y", "message"),
    [
        (pl.LazyFrame({"a": [1, 2]}), [1, 2], r"u is a LazyFrame, .* call .collect\(\) first"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), [1, 2], "u is a data frame that cannot be read"),
        (pd.DataFrame({"a": [1, 2]}), pd.Series([1, 2], index=[1, 0]), "u and y have different row labels"),
        (pd.DataFrame({"a": np.array([1, "x"], dtype=object)}), [1, 2], "in its column 'a': could not convert"),
    ],
)
def test_frames_that_cannot_be_records(u, y, message):
    with pytest.raises(InputError, match=message):
        Series(u, y)


def test_object_columns_of_numbers_and_names_of_any_iterable():
    record = Series(pd.DataFrame({"a": np.array([1, 2.5], dtype=object)}), [1, 2])
    np.testing.assert_array_equal(record.u[:, 0], [1.0, 2.5])
    assert Series([1, 2], [1, 2], input_names=pd.Index(["a"])).input_names == ("a",)


# Times as row labels -------------------------------------------------------------------------------------------------


def framed(times):
    return pd.DataFrame({"u": np.sin(np.arange(len(times)) ** 1.5), "y": np.arange(len(times)) % 7.0}, index=times)


def series(frame, **options):
    return Series(frame[["u"]], frame[["y"]], **options)


@pytest.mark.parametrize(
    "times",
    [
        pd.date_range("2026-01-01", periods=30, freq="4s"),
        pd.date_range("2026-03-29", periods=30, freq="4s", tz="Europe/Berlin"),
        pd.timedelta_range("0s", periods=30, freq="4s"),
    ],
)
def test_times_give_the_sampling_interval(times):
    assert series(framed(times)).dt == 4.0
    assert series(framed(times), dt=4.0).dt == 4.0
    with pytest.raises(InputError, match="dt is 8, but the row labels of u and y are 4 s apart; leave dt out"):
        series(framed(times), dt=8.0)


def test_labels_that_are_no_times_say_nothing():
    assert series(framed(np.arange(30) * 2.0)).dt == 1.0


def test_uneven_times_are_refused_with_the_place():
    times = pd.date_range("2026-01-01", periods=30, freq="4s").delete(12)
    with pytest.raises(InputError, match=r"u and y go from 2026-01-01 00:00:44 to 2026-01-01 00:00:52.*median is 4 s"):
        series(framed(times))
    with pytest.raises(InputError, match="must increase in even steps"):
        series(framed(times[:12][::-1]))


def test_a_little_jitter_is_accepted_with_a_note():
    seconds = 4.0 * np.arange(30.0)
    seconds[7] += 0.1
    with pytest.warns(UserWarning, match=r"the row labels of u and y are not quite even: steps differ by up to 2.5%"):
        assert series(framed(pd.to_timedelta(seconds, unit="s"))).dt == pytest.approx(4.0)


def test_inputs_of_another_interval_are_refused():
    times = pd.date_range("2026-01-01", periods=60, freq="4s")
    model = ARX(lags=2, input_lags=2).fit(series(framed(times)))
    assert len(model.simulate(framed(times)[["u"]])) == 60
    with pytest.raises(
        InputError, match="the rows of u are 8 s apart, but the model was trained with dt=4; resample u"
    ):
        model.simulate(framed(pd.date_range("2026-01-01", periods=60, freq="8s"))[["u"]])


def test_records_of_one_interval_agree_whatever_their_lengths():
    """0.1 s is not 0.1 after a division by the number of rows."""
    parts = [series(framed(pd.date_range("2026-01-01", periods=rows, freq="100ms"))) for rows in (101, 137)]
    assert len({part.dt for part in parts}) == 2
    ARX(lags=2, input_lags=2).fit(parts)
    compare(*parts, {"ARX": ARX(2, 2)}, seeds=1)


def test_times_of_arrow_are_times():
    times = pd.Index(pd.array(pd.date_range("2026-01-01", periods=30, freq="4s"), dtype="timestamp[ns][pyarrow]"))
    assert series(framed(times)).dt == 4.0


def test_measured_outputs_with_other_labels_are_refused():
    frame = framed(pd.date_range("2026-01-01", periods=60, freq="4s"))
    path = ARX(lags=2, input_lags=2).fit(series(frame)).simulate(frame[["u"]])
    for use in (lambda y: scores(path, y), path.plot):
        use(frame[["y"]])
        with pytest.raises(InputError, match="other row labels than the inputs of the simulation; align them first"):
            use(frame[["y"]][::-1])


def test_records_with_other_columns_are_refused_by_predict():
    model, frame = named_model()
    other = Series(frame[["a"]].assign(c=frame["b"]), frame["z"])
    with pytest.raises(InputError, match=r"the record has the columns \['a', 'c'\], the model \['a', 'b'\]"):
        model.predict(other)
    model.predict(Series(frame[["a", "b"]].to_numpy(), frame["z"].to_numpy()))  # arrays count by position
