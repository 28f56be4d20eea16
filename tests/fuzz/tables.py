"""Tables in CSV files."""

import gzip
import warnings
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from fuzz.arrays import sides
from fuzz.harness import Property, attempt
from fuzz.junk import mostly
from revarb.data.csv_file import CsvForm
from revarb.data.sampling import measure_together, split_at_gaps
from revarb.data.table_file import Table

cells = st.sampled_from(
    ["1", "2.5", "-3e5", " 4 ", "", "nan", "inf", "x", "u", "y", '"', '""', '"a\nb"', "\x00", "\ufeff", "é", "1_0", "٣",
     "9" * 400, "1e999", "1e-999", "0x1", "1,5", "1,500", "'", "\u2028", "x" * 140_000, "#N/A", "# a", "#", "-", "?",
     "15.11.2026", "V", "1.234,5"]
) | st.text(max_size=4)  # fmt: skip


@st.composite
def csv_files(draw, lengths: st.SearchStrategy[int] = sides) -> bytes:
    """Nearly a table: a header line and rows of numbers, with a few cells changed, or a whole row."""
    delimiter, end = draw(st.sampled_from([",", ";", "\t"])), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    rows = [["u", "y"]] + [[str(row), "1.5"] for row in range(draw(lengths))]
    for _ in range(draw(st.integers(0, 2))):
        rows[draw(st.integers(0, len(rows) - 1))][draw(st.integers(0, 1))] = draw(cells)
    if draw(st.integers(0, 3)) == 0:
        rows[draw(st.integers(0, len(rows) - 1))] = draw(st.lists(cells, max_size=4))
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16"]))
    content = end.join(delimiter.join(row) for row in rows).encode(encoding, errors="ignore")
    return draw(st.sampled_from([content, content, content, gzip.compress(content), gzip.compress(content)[:-5]]))


def table_is_sound(case: tuple[bytes, tuple]) -> None:
    """Columns of numbers, as long as the table, and of times that go on evenly."""
    content, form = case
    Path("t.csv").write_bytes(content)
    table = attempt(lambda: Table("t.csv", CsvForm(*form)))
    names = () if table is None else (*table.names, "no such column")
    for name in names:
        _check_column(table, name)


def _check_column(table: Table, name: str) -> None:
    whole, with_gaps = (attempt(lambda gaps=gaps: table.columns([name], missing=gaps)) for gaps in (False, True))
    assert whole is None or (whole.shape == (len(table), 1) and np.isfinite(whole).all())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).* it counts as missing", UserWarning)
        measured = attempt(lambda: table.measured([name]))
    for found in (with_gaps, measured):
        assert found is None or (found.shape == (len(table), 1) and not np.isinf(found).any())
    _check_times(table, name)


def _check_times(table: Table, name: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).* they are taken as even", UserWarning)
        warnings.filterwarnings("ignore", "(?s).* gap", UserWarning)
        interval = attempt(lambda: measure_together([table, table], name)[0].interval)
        split = attempt(lambda: split_at_gaps(table, name))
    assert interval is None or 0.0 < interval < np.inf
    assert interval is None or split is not None  # what is even has no gaps
    if split is not None:
        lengths = [piece.stop - piece.start for piece in split.records]
        assert 0.0 < split.interval < np.inf and min(lengths) >= 2 and sum(lengths) <= len(table)


odd_forms = st.tuples(
    st.sampled_from([None, ".", ",", ""]),
    st.sampled_from([None, None, ",", ";", "tab", "space", "|", "x"]),
    st.sampled_from([0, 0, 1, 9, -1]),
)
forms = mostly(st.just(()), odd_forms)
csv = st.tuples(csv_files() | st.binary(max_size=60), forms)
PROPERTIES = {"tables: bytes and text": Property(table_is_sound, csv, 500)}
