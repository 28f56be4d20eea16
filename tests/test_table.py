import numpy as np
import pytest

from revarb import InputError
from revarb.table import Table, write_table


def table(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    return Table(path)


@pytest.mark.parametrize(
    "text", ["u,y\n1,2\n3,4\n", "u;y\r\n1;2\r\n3;4", "u\ty\n1\t2\n\n3\t4\n", "\ufeffu , y\n 1, 2\n3,4e0"]
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
        ("u,y\n", "has a header line but no data"),
        ("1,2\n3,4\n", "begins with numbers"),
        ("u,u\n1,2\n", "two columns named 'u'"),
        ("u,y\n1,2\n3\n", "line 3: 1 cells, but the header names 2"),
        ("u,y\n1,x\n", r"line 2, column 'y': 'x' is not a number"),
        ("u,y\n1,\n", "line 2, column 'y': '' is not a number"),
        ("u,y\n1,2\n1,nan\n", "line 3, column 'y': 'nan' is not finite"),
        ("u,y\n1,inf\n", "is not finite"),
        ("u,z\n1,2\n", "has no column 'y'; its columns are u, z"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        table(tmp_path, text).columns(["y"])


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
