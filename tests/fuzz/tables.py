"""Tables in CSV files, and the times in them."""

import gzip
import warnings
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from fuzz.arrays import numbers, sides
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


EVEN_TIMES = [
    "{}", "{}e-320", "{}e307", "-{}", "2026-11-15T20:30:0{}", "2026-11-0{}", "9999-12-31T23:59:5{}.999999",
    "2026-11-15 20:30:0{}+23:59", "2026-W0{}-1", "0001-01-01T00:00:0{}+14:00",
]  # fmt: skip
ODD_TIMES = [
    "now", "-1.7e308", "0", "1.7e308", "5e-324", "nan", "1e400", "", "2026-02-30", "2026-11-15", "24:00", "1_0",
    "2026-11-15T20:30:02Z", "2026-11-15T20:30:02", "9999-12-31T23:59:59-23:59", "20261115T203002,5", "٣",
]  # fmt: skip


@st.composite
def time_files(draw) -> bytes:
    """Nearly even times, or arbitrary ones."""
    odd = st.sampled_from(ODD_TIMES) | st.text(max_size=3)
    written = st.sampled_from(EVEN_TIMES).map(lambda even: [even.format(row) for row in range(1, 7)])
    counted = st.tuples(numbers, numbers).map(lambda drawn: [str(drawn[0] + row * drawn[1]) for row in (-1, 0, 1)])
    times = draw(mostly(written | counted, st.lists(odd, min_size=1, max_size=3)))
    if draw(st.integers(0, 3)) == 0:
        times[draw(st.integers(0, len(times) - 1))] = draw(odd)
    return "\n".join(["t,y", *(f'"{time}",1' for time in times)]).encode(errors="ignore")


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


def interval_is_sound(content: bytes) -> None:
    Path("t.csv").write_bytes(content)
    table = attempt(lambda: Table("t.csv"))
    if table is not None:
        _check_times(table, "t")


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
PROPERTIES = {
    "tables: bytes and text": Property(table_is_sound, csv, 500),
    "tables: times": Property(interval_is_sound, time_files(), 200),
}
