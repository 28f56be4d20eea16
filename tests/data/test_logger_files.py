"""CSV files as loggers and spreadsheets write them: read where they are unambiguous, else refused with an option."""

import gzip

import numpy as np
import pytest

from revarb.data.tables.csv_form import CsvForm
from revarb.data.tables.sampling import measure_sampling
from revarb.data.tables.table import Table
from revarb.errors import InputError
from support.tables import csv_table

UNAMBIGUOUS = {
    "decimal comma and semicolon": "t;u;y\n0,5;1;-2,25\n1,0;3;4\n",
    "decimal comma and tab": "t\tu\ty\n0,5\t1\t-2,25\n1,0\t3\t4\n",
    "decimal comma in quotes": 't,u,y\n"0,5",1,"-2,25"\n"1,0",3,4\n',
    "semicolon": "t;u;y\n0.5;1;-2.25\n1.0;3;4\n",
    "spaces": " t  u   y\n 0.5 1 -2.25\n 1.0 3   4\n",
    "units": "t,u,y\ns,V,mm\n0.5,1,-2.25\n1.0,3,4\n",
    "units, some empty": "t;u;y\n;[-];\n0,5;1;-2,25\n1,0;3;4\n",
    "comments": '# Logger 7, made in 2026\n#\nt,u,y\n# "begin\n0.5,1,-2.25\n#pump off\n1.0,3,4\n# end\n',
    "header of NumPy": "# t,u,y\n0.5,1,-2.25\n1.0,3,4\n",
    "header of NumPy below a comment, spaces": "# made by savetxt\n# t u y\n0.5 1 -2.25\n1.0 3 4\n",
    "column without a name": "\tt\tu\ty\n0\t0.5\t1\t-2.25\n1\t1.0\t3\t4\n",
}


@pytest.mark.parametrize("text", UNAMBIGUOUS.values(), ids=UNAMBIGUOUS)
def test_unambiguous_files_are_read(tmp_path, text):
    read = csv_table(tmp_path, text)
    np.testing.assert_array_equal(read.columns(["t", "u", "y"]), [[0.5, 1, -2.25], [1, 3, 4]])
    assert measure_sampling(read, "t").interval == 0.5


def test_semicolons_win_over_commas_in_the_names(tmp_path):
    read = csv_table(tmp_path, "p, bar;T, degrees, inside\n1,5;20,25\n1,6;20,5\n")
    np.testing.assert_array_equal(read.columns(["p, bar", "T, degrees, inside"]), [[1.5, 20.25], [1.6, 20.5]])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
def test_encodings_and_gzip(tmp_path, encoding):
    text = "t;Größe\r\n0;1,5\r\n1;2,5\r\n"
    np.testing.assert_array_equal(csv_table(tmp_path, text, encoding).columns(["Größe"])[:, 0], [1.5, 2.5])
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode(encoding)))
    np.testing.assert_array_equal(Table(tmp_path / "t.csv.gz").columns(["Größe"])[:, 0], [1.5, 2.5])


def test_big_endian(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xfe\xff" + "y\n1\n".encode("utf-16-be"))
    np.testing.assert_array_equal(Table(tmp_path / "t.csv").columns(["y"]), [[1.0]])


def test_damaged_gzip(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"y\n1\n")[:-4])
    with pytest.raises(InputError, match=r"t.csv.gz is not a gzip file, or it is damaged"):
        Table(tmp_path / "t.csv.gz")


def test_places_are_lines_of_the_file(tmp_path):
    read = csv_table(tmp_path, "Logger\n\n# about\nt;y\ns;mm\n0;1\n# note\n1;broken\n", skip_rows=1)
    with pytest.raises(InputError, match=r"line 8, column 'y': 'broken' is not a number$"):
        read.columns(["y"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t;y\n0;1,500\n1;2,250\n", r"line 2, column 'y': '1,500' is not a number with a decimal point; --decimal ,"),
        ("t;y\n0.5;1\n1.0;2,5\n", r"line 3, column 'y': '2,5' is not .*; --decimal , \(in Python decimal=','\) reads"),
        ("t;y\n0;1,500,000\n", "'1,500,000' is not a number; leave out commas between thousands"),
        ("t;y\n0;1.500,25\n", "'1.500,25' is not a number$"),
        ("t,y\n0,5,1,5\n", "line 2: 4 cells, but .*--separator"),
        ("t;y\n#3;4\n1;2\n", "line 2, column 't': '#3' is not a number"),
    ],
)
def test_ambiguous_files_are_refused_with_the_option(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        csv_table(tmp_path, text).columns(["t", "y"])


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("t;y\n0;1,500\n1;2,250\n", {"decimal": ","}),
        ("Logger 7\nno,1,of,2\nt,y\n0,1.5\n1,2.25\n", {"skip_rows": 2}),
        ("t|y\n0|1.5\n1|2.25\n", {"separator": "|"}),
        ("t|y\n0|1,5\n1|2,25\n", {"separator": "|"}),
        ("t\ty\n0\t1.5\n1\t2.25\n", {"separator": "tab"}),
        ("t\ty\n0\t1.5\n1\t2.25\n", {"separator": "\\t"}),
    ],
)
def test_options_read_them(tmp_path, text, form):
    np.testing.assert_array_equal(csv_table(tmp_path, text, **form).columns(["t", "y"]), [[0, 1.5], [1, 2.25]])


def test_a_decimal_comma_that_was_named_is_the_only_one(tmp_path):
    read = csv_table(tmp_path, "y;z\n1,5;2.5\n", decimal=",")
    assert read.columns(["y"]) == 1.5
    with pytest.raises(InputError, match=r"'2.5' is not a number with a decimal comma; leave out --decimal"):
        read.columns(["z"])


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"decimal": ";"}, "decimal must be '.' or ',', received ';'"),
        ({"separator": "::"}, r"separator must be one of , ; \| tab space, received '::'"),
        ({"skip_rows": -1}, "skip_rows must be a whole number of at least 0, received -1"),
    ],
)
def test_wrong_options(form, message):
    with pytest.raises(InputError, match=message):
        CsvForm(**form)


def test_a_row_of_numbers_and_a_gap_is_no_row_of_units(tmp_path):
    """A text above texts, or a gap, is a row of the record."""
    read = csv_table(tmp_path, "name,y\nfirst,\nsecond,3\n")
    np.testing.assert_array_equal(read.columns(["y"], missing=True)[:, 0], [np.nan, 3])
    dates = csv_table(tmp_path, "t,y\n15.11.2026,off\n16.11.2026,3\n")
    with pytest.raises(InputError, match="line 2, column 'y': 'off' is not a number"):
        dates.columns(["y"])


def test_missing_values_at_the_begin_of_a_line_are_no_comments(tmp_path):
    read = csv_table(tmp_path, "y,u\n1,2\n#N/A,3\n4,5\n")
    np.testing.assert_array_equal(read.columns(["y"], missing=True)[:, 0], [1, np.nan, 4])


def test_odd_cells_of_a_measured_column_are_missing(tmp_path):
    read = csv_table(tmp_path, "y,z\n1,1\noff,2\ninf,3\n4,4\n")
    with pytest.warns(
        UserWarning, match=r"line 3, column 'y': 'off' is not a number; it counts as missing \(as are 1 m"
    ):
        np.testing.assert_array_equal(read.measured(["y", "z"])[:, 0], [1, np.nan, np.nan, 4])


def test_labels_are_numbers_or_texts(tmp_path):
    read = csv_table(tmp_path, "t;d\n0,5;15.11.2026\n1,0;16.11.2026\n")
    assert read.labels("t").tolist() == [0.5, 1.0] and read.labels("d").tolist() == ["15.11.2026", "16.11.2026"]


def test_a_row_of_units_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("u,y\nV,mm\n1,2\n3,4\n")
    with pytest.warns(UserWarning, match=r"a.csv, line 2: V, mm is taken as the units of the columns"):
        assert len(Table(tmp_path / "a.csv")) == 2
