"""Tables in files: named columns in and out."""

import os
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from revarb.data.table_file import Table, write_csv, write_table
from revarb.errors import InputError
from support.tables import csv_table, parquet_table
from support.waiting import DEADLINE

COLUMNS = {"t": np.array(["15.11.2026", "16.11.2026"]), "scored": np.array([0, 1]), "y, °C": np.array([0.1, 1e-300])}
READERS = {
    "t.csv": pd.read_csv,
    "t.JSON": lambda path: pd.read_json(path, precise_float=True),
    "t.json": lambda path: pl.read_json(path).to_pandas(),
    "t.parquet": pd.read_parquet,
}


def test_odd_cells_of_a_measured_column_are_missing(tmp_path):
    read = csv_table(tmp_path, "y,z\n1,1\noff,2\ninf,3\n4,4\n")
    with pytest.warns(
        UserWarning, match=r"line 3, column 'y': 'off' is not a number; it counts as missing \(as are 1 m"
    ):
        np.testing.assert_array_equal(read.measured(["y", "z"])[:, 0], [1, np.nan, np.nan, 4])


def test_labels_are_numbers_or_texts(tmp_path):
    read = csv_table(tmp_path, "t;d\n0,5;15.11.2026\n1,0;16.11.2026\n")
    assert read.labels("t").tolist() == [0.5, 1.0] and read.labels("d").tolist() == ["15.11.2026", "16.11.2026"]


@pytest.mark.parametrize("name", READERS)
def test_the_ending_says_what_is_written(tmp_path, name):
    assert write_table(tmp_path / name, COLUMNS) == tmp_path / name
    frame = READERS[name](tmp_path / name)
    assert list(frame.columns) == list(COLUMNS)
    for column, values in COLUMNS.items():
        np.testing.assert_array_equal(frame[column], values)


def test_json_has_no_nan_and_csv_any_ending(tmp_path):
    write_table(tmp_path / "t.json", {"y": np.array([1.0, np.nan])})
    assert (tmp_path / "t.json").read_text() == '[{"y": 1.0}, {"y": null}]'
    assert write_csv(tmp_path / "t.xlsx", COLUMNS).read_text().startswith("t,scored,")


def test_a_pipe_gets_csv_and_stays(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_table(pipe, {"y": np.array([1.0, 2.0])})
    reader.join(timeout=DEADLINE)
    assert read == ["y\n1.0\n2.0\n"] and pipe.is_fifo()


KINDS = [pa.float64(), pa.float32(), pa.int64(), pa.int8(), pa.uint16(), pa.decimal128(21, 2), pa.null(), pa.bool_()]


@pytest.mark.parametrize("kind", KINDS, ids=str)
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


def test_numbers_survive_writing_and_reading_and_row_groups_are_joined(tmp_path, rng):
    values = rng.normal(size=(50, 2)) * 10.0 ** rng.integers(-12, 12, size=(50, 2))
    columns = {"a": values[:, 0], "b, with comma": values[:, 1]}
    pq.write_table(pa.table(columns), tmp_path / "t.PARQUET", row_group_size=7)
    written = [write_table(tmp_path / name, columns) for name in ("t.csv", "t.parquet")]
    for path in (*written, tmp_path / "t.PARQUET"):
        np.testing.assert_array_equal(Table(path).columns([*columns]), values)
