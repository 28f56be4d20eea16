"""Excel files: read like CSV files, with dates, units and missing values."""

import re
import sys
from datetime import datetime, time, timedelta

import numpy as np
import pytest

import revarb
from revarb.data.csv_file import CsvForm
from revarb.data.table_file import Table

openpyxl = pytest.importorskip("openpyxl")
START = datetime(2026, 11, 15, 20, 30)


def write(path, *rows, sheets=()):
    """A workbook with these rows, and further sheets with one cell each."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for name in sheets:
        book.create_sheet(name).append(["other"])
    book.save(path)
    return path


def test_a_sheet_is_a_record(tmp_path):
    """An empty column, an empty row above, units, a date, a formula without a value, missing values, a boolean."""
    rows = [[START + timedelta(seconds=0.5 * row), None, row / 3, row % 2 == 0, 1e-300 * row] for row in range(4)]
    rows[1][4], rows[2][4] = None, "#N/A"
    file = write(tmp_path / "t.XLSX", [], ["t", None, "u", "on", "y"], ["", None, "V", "", "mm"], *rows)
    with pytest.warns(UserWarning, match="t.XLSX, row 3: , V, , mm is taken as the units of the columns"):
        [record] = revarb.read_records(file, inputs=["u", "on"], outputs="y", time="t")
    assert record.dt == 0.5 and record.u.tolist() == [[row / 3, float(row % 2 == 0)] for row in range(4)]
    np.testing.assert_array_equal(record.y[:, 0], [0.0, np.nan, np.nan, 3e-300])


def test_places_and_skipped_rows(tmp_path):
    file = write(tmp_path / "t.xlsx", ["Logger", 7], ["u", "y"], [1, 2], [3, "off"])
    table = Table(file, CsvForm(skip_rows=1, decimal=","))  # numbers are numbers
    assert table.names == ("u", "y") and table.columns(["u"])[:, 0].tolist() == [1.0, 3.0]
    with pytest.raises(revarb.InputError, match=r"t\.xlsx, row 4, column 'y': 'off' is not a number"):
        table.columns(["y"])


def test_times_of_day_and_several_sheets(tmp_path):
    file = write(tmp_path / "t.xlsx", ["t", "y"], *([time(8, 0, s), s] for s in range(3)), sheets=["more"])
    with pytest.warns(UserWarning, match="t.xlsx has 2 sheets; the first one, 'Sheet', is read"):
        assert Table(file).seconds("t").tolist() == [28800.0, 28801.0, 28802.0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "is empty; it needs a header line"),
        ([[1, 2], [3, 4]], "begins with numbers (1, 2 …): it needs a header line"),
        ([["u", "y"]], "has column names but no data"),
        ([["u", None], [1, 2]], "has no column 'y'; its columns are u,"),
    ],
)
def test_sheets_that_are_no_table(tmp_path, rows, message):
    file = write(tmp_path / "t.xlsx", *rows)
    with pytest.raises(revarb.InputError, match=re.escape(message)):
        Table(file).columns(["y"])


@pytest.mark.parametrize("content", [b"", b"t,y\n1,2\n", b"PK\x03\x04"])
def test_other_files(tmp_path, content):
    (tmp_path / "t.xlsx").write_bytes(content)
    with pytest.raises(revarb.InputError, match=r"t\.xlsx is not an Excel file, or it is damaged"):
        Table(tmp_path / "t.xlsx")


def test_without_openpyxl_a_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(revarb.InputError, match=r't\.xlsx needs openpyxl; pip install "revarb\[excel\]", or save it'):
        Table(tmp_path / "t.xlsx")
