"""Tables in CSV and Parquet files."""

import sys
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from revarb.data.tables.table import Table
from revarb.data.tables.writing import write_table
from revarb.errors import InputError
from support.tables import csv_table, parquet_table


@pytest.mark.parametrize(
    "text", ["u,y\n1,2\n3,4\n", "u;y\r\n1;2\r\n3;4", "u\ty\n1\t2\n\n3\t4\n", "\ufeffu , y\n 1, 2\n   \n3,4e0\n,\n,\n"]
)
def test_common_dialects(tmp_path, text):
    read = csv_table(tmp_path, text)
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
        ("u,y\n1,2\n3\n", r"line 3: 1 cells, but the header \(line 1\) names 2; --separator \(in Python separator=\)"),
        (
            "Logger 7\nu,y\n1,2\n",
            r"line 2: 2 cells, but .*--skip-rows \(skip_rows=\) leaves out lines above the header",
        ),
        ("u|y\n1|2\n", r"no column 'y'; its columns are u\|y; --separator"),
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
        csv_table(tmp_path, text).columns(["y"])


@pytest.mark.parametrize(
    "gap", ["", " ", '""', "NaN", "nan", "NA", "null", "N/A", "#N/A", "#NV", "#NA", "-", "--", " - ", "?"]
)
def test_an_empty_cell_is_nan_where_gaps_are_allowed(tmp_path, gap):
    read = csv_table(tmp_path, f"u,y\n1,2\n3,{gap}\n5,6\n")
    np.testing.assert_array_equal(read.columns(["y", "u"], missing=True), [[2, 1], [np.nan, 3], [6, 5]])


@pytest.mark.parametrize(("cell", "message"), [("inf", "is not finite"), ("none", "is not a number")])
def test_other_texts_are_not_gaps(tmp_path, cell, message):
    with pytest.raises(InputError, match=f"line 3, column 'y': '{cell}' {message}"):
        csv_table(tmp_path, f"y\n1\n{cell}\n").columns(["y"], missing=True)


def test_an_empty_row_inside_a_record_is_kept_as_a_gap(tmp_path):
    read = csv_table(tmp_path, 'y,z\n1,a\n,\n""," "\n4,b\n,\n')
    np.testing.assert_array_equal(read.columns(["y"], missing=True)[:, 0], [1, np.nan, np.nan, 4])


def test_files_that_are_no_text(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not a text file in UTF-8"):
        Table(tmp_path / "x.csv")
    with pytest.raises(InputError, match="cannot read"):
        Table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="cannot read"):
        Table(tmp_path)


def test_numbers_survive_writing_and_reading(tmp_path, rng):
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
    read = parquet_table(tmp_path, {"y": column, "other": ["a", "b", "c"]})
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
        parquet_table(tmp_path, columns).columns(["y"])


def test_files_that_are_no_parquet(tmp_path):
    (tmp_path / "text.parquet").write_text("u,y\n1,2\n" * 9)
    with pytest.raises(InputError, match=r"text.parquet is not a Parquet file, or it is damaged"):
        Table(tmp_path / "text.parquet")
    parquet_table(tmp_path, {"y": np.arange(100.0)})
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[:50] + bytes(200) + whole[250:])
    with pytest.raises(InputError, match=r"t.parquet is not a Parquet file, or it is damaged"):
        Table(tmp_path / "t.parquet")
    (tmp_path / "folder.parquet").mkdir()
    for name in ("folder.parquet", "none.parquet"):
        with pytest.raises(InputError, match=f"cannot read .*{name}"):
            Table(tmp_path / name)


def test_without_pyarrow_it_says_what_to_install(tmp_path, monkeypatch):
    parquet_table(tmp_path, {"y": [1.0]})
    monkeypatch.delitem(sys.modules, "revarb.data.tables.parquet_cells")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r't.parquet needs pyarrow; pip install "revarb\[parquet\]"'):
        Table(tmp_path / "t.parquet")
