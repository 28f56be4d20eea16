"""CSV files as loggers and spreadsheets write them: read where they are unambiguous, or with an option."""

import gzip

import numpy as np
import pytest

from revarb.data.sampling import measure_sampling
from revarb.data.table_file import Table
from revarb.errors import InputError
from support.tables import csv_table

UNAMBIGUOUS = {
    "decimal comma and semicolon": "t;u;y\n0,5;1;-2,25\n1,0;3;4\n",
    "decimal comma and tab": "t\tu\ty\n0,5\t1\t-2,25\n1,0\t3\t4\n",
    "decimal comma in quotes": 't,u,y\n"0,5",1,"-2,25"\n"1,0",3,4\n',
    "semicolon": "t;u;y\r\n0.5;1;-2.25\r\n1.0;3;4",
    "spaces": " t  u   y\n 0.5 1 -2.25\n 1.0 3   4\n",
    "byte order mark, blank rows": "\ufefft , u,y\n 0.5, 1,-225e-2\n   \n1,3,4e0\n,,\n,,\n",
    "units": "t,u,y\ns,V,mm\n0.5,1,-2.25\n1.0,3,4\n",
    "units, some empty": "t;u;y\n;[-];\n0,5;1;-2,25\n1,0;3;4\n",
    "comments": '# Logger 7, made in 2026\n#\nt,u,y\n# "begin\n0.5,1,-2.25\n#pump off\n1.0,3,4\n# end\n',
    "header of NumPy": "# t,u,y\n0.5,1,-2.25\n1.0,3,4\n",
    "header of NumPy below a comment, spaces": "# made by savetxt\n# t u y\n0.5 1 -2.25\n1.0 3 4\n",
    "column without a name": "\tt\tu\ty\n0\t0.5\t1\t-2.25\n1\t1.0\t3\t4\n",
}


@pytest.mark.parametrize("text", UNAMBIGUOUS.values(), ids=UNAMBIGUOUS)
@pytest.mark.filterwarnings("ignore:.*taken as the units")
def test_unambiguous_files_are_read(tmp_path, text):
    read = csv_table(tmp_path, text)
    np.testing.assert_array_equal(read.columns(["t", "u", "y"]), [[0.5, 1, -2.25], [1, 3, 4]])
    assert measure_sampling(read, "t").interval == 0.5 and len(read) == 2 and "u" in read and "v" not in read


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("t;y\n0;1,500\n1;2,250\n", {"decimal": ","}),
        ("Logger 7\nno,1,of,2\nt,y\n0,1.5\n1,2.25\n", {"skip_rows": 2}),
        *[(f"t|y\n0|1{mark}5\n1|2{mark}25\n", {"separator": "|"}) for mark in ".,"],
        *[("t\ty\n0\t1.5\n1\t2.25\n", {"separator": name}) for name in ("tab", "\\t")],
    ],
)
def test_options_read_the_others(tmp_path, text, form):
    np.testing.assert_array_equal(csv_table(tmp_path, text, **form).columns(["t", "y"]), [[0, 1.5], [1, 2.25]])


def test_semicolons_win_over_commas_in_the_names(tmp_path):
    read = csv_table(tmp_path, "p, bar;T, degrees, inside\n1,5;20,25\n1,6;20,5\n")
    np.testing.assert_array_equal(read.columns(["p, bar", "T, degrees, inside"]), [[1.5, 20.25], [1.6, 20.5]])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig", "utf-8"])
def test_encodings_and_gzip(tmp_path, encoding):
    text = ("\ufeff" if encoding == "utf-16-be" else "") + "t;Größe\r\n0;1,5\r\n1;2,5\r\n"
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode(encoding)))
    for read in (csv_table(tmp_path, text, encoding), Table(tmp_path / "t.csv.gz")):
        np.testing.assert_array_equal(read.columns(["Größe"])[:, 0], [1.5, 2.5])


def test_places_are_lines_of_the_file_and_units_are_named(tmp_path):
    with pytest.warns(UserWarning, match=r"t.csv, line 5: s, mm is taken as the units of the columns"):
        read = csv_table(tmp_path, "Logger\n\n# about\nt;y\ns;mm\n0;1\n# note\n1;broken\n", skip_rows=1)
    with pytest.raises(InputError, match=r"line 8, column 'y': 'broken' is not a number$"):
        read.columns(["y"])


GAPS = ["", " ", '""', "NaN", "nan", "NA", "null", "N/A", "#N/A", "#NV", "#NA", "-", "--", " - ", "?"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[(f"u,y\n1,2\n3,{gap}\n5,6\n", [2, np.nan, 6]) for gap in GAPS],
        ("y,u\n1,2\n#N/A,3\n4,5\n", [1, np.nan, 4]),  # no comment
        ('y,z\n1,a\n,\n""," "\n4,b\n,\n', [1, np.nan, np.nan, 4]),  # an empty row inside is a gap, at the end it is not
        ("name,y\nfirst,\nsecond,3\n", [np.nan, 3]),  # a text above texts, or a gap, is no row of units
    ],
)
def test_missing_values(tmp_path, text, expected):
    np.testing.assert_array_equal(csv_table(tmp_path, text).columns(["y"], missing=True)[:, 0], expected)
