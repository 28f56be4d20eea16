"""Tables to CSV, JSON and Parquet files."""

import os
import sys
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest

from revarb.data.tables.writing import check_table_file, write_csv, write_table
from revarb.errors import InputError

COLUMNS = {"t": np.array(["15.11.2026", "16.11.2026"]), "counts": np.array([0, 1]), "y, °C": np.array([0.1, 1e-300])}
READERS = {
    "t.csv": pd.read_csv,
    "t.JSON": lambda path: pd.read_json(path, precise_float=True),
    "t.json": lambda path: pl.read_json(path).to_pandas(),
    "t.parquet": pd.read_parquet,
}


@pytest.mark.parametrize("name", READERS)
def test_the_ending_says_what_is_written(tmp_path, name):
    assert write_table(tmp_path / name, COLUMNS) == tmp_path / name
    frame = READERS[name](tmp_path / name)
    assert list(frame.columns) == list(COLUMNS)
    for column, values in COLUMNS.items():
        np.testing.assert_array_equal(frame[column], values)


def test_json_has_no_nan(tmp_path):
    write_table(tmp_path / "t.json", {"y": np.array([1.0, np.nan])})
    assert (tmp_path / "t.json").read_text() == '[{"y": 1.0}, {"y": null}]'


@pytest.mark.parametrize(("name", "reason"), [("t.xlsx", "the ending .xlsx is not known"), ("t", "it has no ending")])
def test_other_endings_are_refused(tmp_path, name, reason):
    with pytest.raises(InputError, match=f"{reason}; name it .csv, .json, .parquet"):
        check_table_file(tmp_path / name)
    assert write_csv(tmp_path / name, COLUMNS).read_text().startswith("t,counts,")


def test_a_pipe_gets_csv(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_table(tmp_path / "pipe", {"y": np.array([1.0, 2.0])})
    reader.join()
    assert read == ["y\n1.0\n2.0\n"]


def test_without_pyarrow_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r't.parquet needs pyarrow; pip install "revarb\[parquet\]"'):
        check_table_file(tmp_path / "t.parquet")
