import sys
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from revarb.data.tables.sampling import common_interval, sampling_interval
from revarb.data.tables.table import Table
from revarb.data.tables.writing import write_table
from revarb.errors import InputError


def table(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    return Table(path)


def parquet(tmp_path, columns, name="t.parquet"):
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), tmp_path / name)
    return Table(tmp_path / name)


@pytest.mark.parametrize(
    "text", ["u,y\n1,2\n3,4\n", "u;y\r\n1;2\r\n3;4", "u\ty\n1\t2\n\n3\t4\n", "\ufeffu , y\n 1, 2\n   \n3,4e0\n,\n,\n"]
)
def test_common_dialects(tmp_path, text):
    read = table(tmp_path, text)
    np.testing.assert_array_equal(read.columns(["y", "u"]), [[2, 1], [4, 3]])
    assert len(read) == 2 and "u" in read and "v" not in read


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; it needs a header line"),
        ("\n\n", "is empty"),
        (",\n,\n", "is empty"),
        ("u,y\n", "has column names but no data"),
        ("1,2\n3,4\n", "begins with numbers"),
        ("u,u\n1,2\n", "two columns named 'u'"),
        ("u,y\n1,2\n3\n", "line 3: 1 cells, but the header names 2"),
        ("u,y\n1,x\n", r"line 2, column 'y': 'x' is not a number"),
        ("u,y\n1,1_0\n", "'1_0' is not a number"),
        ("u,y\n1,\n", "line 2, column 'y': '' is no value, and only outputs may be missing; fill it"),
        ("u,y\n1,2\n\n1,nan\n", "line 4, column 'y': 'nan' is no value"),
        ("u,y\n1,2\n,\n1,2\n", "line 3, column 'y': '' is no value"),
        ("u,y\n1,inf\n", "'inf' is not finite"),
        ("u,z\n1,2\n", "has no column 'y'; its columns are u, z"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        table(tmp_path, text).columns(["y"])


@pytest.mark.parametrize("gap", ["", " ", '""', "NaN", "nan", "NA", "null"])
def test_a_gap_is_nan_where_it_may_be(tmp_path, gap):
    read = table(tmp_path, f"u,y\n1,2\n3,{gap}\n5,6\n")
    np.testing.assert_array_equal(read.columns(["y", "u"], missing=True), [[2, 1], [np.nan, 3], [6, 5]])


@pytest.mark.parametrize(("cell", "message"), [("inf", "is not finite"), ("none", "is not a number")])
def test_not_everything_is_a_gap(tmp_path, cell, message):
    with pytest.raises(InputError, match=f"line 3, column 'y': '{cell}' {message}"):
        table(tmp_path, f"y\n1\n{cell}\n").columns(["y"], missing=True)


def test_an_empty_row_inside_a_record_is_a_gap_and_no_shorter_record(tmp_path):
    read = table(tmp_path, 'y,z\n1,a\n,\n""," "\n4,b\n,\n')
    np.testing.assert_array_equal(read.columns(["y"], missing=True)[:, 0], [1, np.nan, np.nan, 4])


def test_files_that_are_no_text(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(InputError, match="is not a text file in UTF-8"):
        Table(tmp_path / "x.csv")
    with pytest.raises(InputError, match="cannot read"):
        Table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="cannot read"):
        Table(tmp_path)


def test_numbers_survive_the_way_out_and_in(tmp_path, rng):
    values = rng.normal(size=20) * 10.0 ** rng.integers(-12, 12, size=20)
    write_table(tmp_path / "t.csv", {"a": values, "b, with comma": -values})
    read = Table(tmp_path / "t.csv").columns(["a", "b, with comma"])
    np.testing.assert_array_equal(read, np.stack([values, -values], axis=1))


# Parquet.


@pytest.mark.parametrize(
    "kind",
    [pa.float64(), pa.float32(), pa.int64(), pa.int8(), pa.uint16(), pa.decimal128(21, 2), pa.null(), pa.bool_()],
)
def test_parquet_columns_are_numbers(tmp_path, kind):
    values = [None] * 3 if kind == pa.null() else [1, 0, None]
    column = pa.array([True, False, None]) if kind == pa.bool_() else pa.array(values).cast(kind)
    read = parquet(tmp_path, {"y": column, "other": ["a", "b", "c"]})
    expected = np.array(values, dtype=float)[:, None]
    np.testing.assert_array_equal(read.columns(["y"], missing=True), expected)
    assert len(read) == 3 and read.names == ("y", "other")
    row = int(np.argmax(np.isnan(expected)))
    with pytest.raises(InputError, match=rf"t.parquet, row {row} \(counted from 0\), column 'y': .* is no value"):
        read.columns(["y"])


def test_parquet_in_several_row_groups(tmp_path, rng):
    values = rng.normal(size=(50, 2))
    pq.write_table(pa.table({"u": values[:, 0], "y": values[:, 1]}), tmp_path / "t.PARQUET", row_group_size=7)
    np.testing.assert_array_equal(Table(tmp_path / "t.PARQUET").columns(["u", "y"]), values)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"y": ["1", "2"]}, "t.parquet, column 'y' holds values of type string, which are not numbers"),
        ({"y": [[1.0], [2.0]]}, "column 'y' holds values of type list"),
        ({"y": [datetime(2026, 1, 1)]}, "column 'y' holds values of type timestamp"),
        ({"y": [1.0, np.inf]}, r"row 1 \(counted from 0\), column 'y': 'inf' is not finite"),
        ({"y": [1.0, np.nan]}, r"row 1 \(counted from 0\), column 'y': 'nan' is no value"),
        ({"y": pa.array([], pa.float64())}, "has column names but no data"),
        ({"u": [1.0], "z": [2.0]}, "has no column 'y'; its columns are u, z"),
        (pa.Table.from_arrays([pa.array([1])] * 2, names=["y", "y"]), "has two columns named 'y'"),
    ],
)
def test_parquet_that_cannot_be_used(tmp_path, columns, message):
    with pytest.raises(InputError, match=message):
        parquet(tmp_path, columns).columns(["y"])


def test_files_that_are_no_parquet(tmp_path):
    (tmp_path / "text.parquet").write_text("u,y\n1,2\n" * 9)
    with pytest.raises(InputError, match=r"text.parquet is not a Parquet file, or it is damaged"):
        Table(tmp_path / "text.parquet")
    parquet(tmp_path, {"y": np.arange(100.0)})
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[:50] + bytes(200) + whole[250:])
    with pytest.raises(InputError, match=r"t.parquet is not a Parquet file, or it is damaged"):
        Table(tmp_path / "t.parquet")
    (tmp_path / "folder.parquet").mkdir()
    for name in ("folder.parquet", "none.parquet"):
        with pytest.raises(InputError, match=f"cannot read .*{name}"):
            Table(tmp_path / name)


def test_without_pyarrow_it_says_what_to_install(tmp_path, monkeypatch):
    parquet(tmp_path, {"y": [1.0]})
    monkeypatch.delitem(sys.modules, "revarb.table.parquet_cells")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r't.parquet needs pyarrow; pip install "revarb\[parquet\]"'):
        Table(tmp_path / "t.parquet")


# How a record was sampled.

START = datetime(2026, 11, 15, 20, 30, tzinfo=UTC)


def moments(*seconds):
    return [START + timedelta(seconds=each) for each in seconds]


@pytest.mark.parametrize(
    ("times", "interval"),
    [
        (["0", "0.1", "0.2", "0.3"], 0.1),
        (["-5", "0", "5.004"], 5.002),
        (["2026-11-15T20:30:00", "2026-11-15 20:30:00.5", "20261115T203001"], 0.5),
        (["2026-11-15T20:30:00Z", "2026-11-15T21:30:01+01:00"], 1.0),
        (["2026-11-15", "2026-11-16", "2026-11-17"], 86400.0),
    ],
)
def test_the_interval_of_even_times(tmp_path, times, interval):
    read = table(tmp_path, "t,y\n" + "\n".join(f"{each},1" for each in times))
    assert sampling_interval(read, "t") == pytest.approx(interval)


@pytest.mark.parametrize(
    "column",
    [
        [0.0, 0.5, 1.0],
        pa.array([3, 4, 5], pa.int32()),
        pa.array(moments(0, 1, 2), pa.timestamp("s", "UTC")),
        pa.array(moments(0, 0.001, 0.002), pa.timestamp("ns", "Europe/Berlin")),
        [date(2026, 11, day) for day in (15, 16, 17)],
    ],
)
def test_the_interval_of_even_times_in_parquet(tmp_path, column):
    interval = sampling_interval(parquet(tmp_path, {"t": column}), "t")
    assert interval in (0.5, 1.0, 0.001, 86400.0)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ("0 1 2 4 5", r"t.csv, line 5, column 't': time goes from 2 to 4, but .* even steps \(their median is 1\)"),
        ("0 1 2 2 3", "line 5, column 't': time goes from 2 to 2"),
        ("0 1 2 1.5 2.5 3.5", "line 5, column 't': time goes from 2 to 1.5"),
        ("0 1 2.002 3.002 4.002", "line 4, column 't': time goes from 1 to 2.002"),
        ("4 3 2", r"time goes from 4 to 3, but it must increase .* \(their median is -1\)"),
        ("0", "has a single row"),
        ("0 NA 2", "line 3, column 't': 'NA' is no value"),
        ("0 soon 2", "line 3, column 't': 'soon' is not a number"),
        ("2026-01-01 soon", "line 3, column 't': 'soon' is not a time, neither in seconds nor in ISO 8601"),
        ("2026-01-01 2026-01-02T00:00Z", "some times have a time zone and some have none"),
        ("2026-01-01 2026-01-02 2026-01-03 2026-01-05", r"time goes from 2026-01-03 to 2026-01-05.* is 86400\)"),
    ],
)
def test_uneven_times_are_refused_with_their_place(tmp_path, times, message):
    read = table(tmp_path, "t,y\n" + "\n".join(f"{each},1" for each in times.split()))
    with pytest.raises(InputError, match=message):
        sampling_interval(read, "t")


def test_uneven_times_in_parquet(tmp_path):
    read = parquet(tmp_path, {"t": moments(0, 1, 2, 5), "gap": [None, *moments(0, 1, 2)], "text": ["a"] * 4})
    with pytest.raises(InputError, match=r"row 3 \(counted from 0\), column 't': time goes from 2026-11-15T20:30:02"):
        sampling_interval(read, "t")
    with pytest.raises(InputError, match=r"row 0 \(counted from 0\), column 'gap': 'NaT' is no value"):
        sampling_interval(read, "gap")
    with pytest.raises(InputError, match="column 'text' holds values of type string"):
        sampling_interval(read, "text")
    with pytest.raises(InputError, match="has no column 'time'; its columns are t, gap, text"):
        sampling_interval(read, "time")


def test_tables_share_an_interval(tmp_path):
    """Rounding makes 0.1 and 0.1 differ; records must agree to the last digit, so one of them is taken for all."""
    first = parquet(tmp_path, {"t": 0.1 * np.arange(7)}, "a.parquet")
    second = parquet(tmp_path, {"t": 33.3 + 0.1 * np.arange(9)}, "b.parquet")
    assert common_interval([first, second], "t") == sampling_interval(first, "t") != sampling_interval(second, "t")
    third = parquet(tmp_path, {"t": 0.2 * np.arange(9)}, "c.parquet")
    with pytest.raises(InputError, match=r"c.parquet is sampled every 0.2, but .*a.parquet every 0.1; resample one"):
        common_interval([first, second, third], "t")
