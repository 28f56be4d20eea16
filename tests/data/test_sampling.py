"""The sampling interval of times: even, with jitter, and with gaps; what is refused is in test_refusals.py."""

import warnings
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from revarb.data.sampling import (
    check_interval,
    find_gaps,
    measure_sampling,
    measure_steps,
    measure_together,
    split_at_gaps,
)
from support.tables import parquet_table, times_table

START = datetime(2026, 11, 15, 20, 30, tzinfo=UTC)


def moments(*seconds):
    return [START + timedelta(seconds=each) for each in seconds]


@pytest.mark.parametrize(
    ("seconds", "row", "gaps"),
    [
        ([0.0, 1.0, 2.0, 4.0, 5.0], 3, [3]),
        ([0.0, 1.0, 2.5, 3.5, 9.0, 10.0, 11.0], 2, [2, 4]),
        ([0.0, 1.0, 9.0], 1, [2]),  # the usual one of two steps is the shorter one
        ([0.0, 1.0, 2.04, 3.0, 4.0], None, []),  # jitter
        ([0.0, 1.0, 2.06, 3.0, 4.0], 2, [2]),
        ([0.0, 1.0, 1.0, 2.0, 3.0], 2, []),  # repeated
        ([0.0, 1.0, 1.0, 2.0, 1.5, 2.5], 2, []),  # repeated and backwards
        ([3.0, 2.0, 1.0, 9.0], 1, []),
    ],
)
def test_the_first_uneven_step_and_gaps(seconds, row, gaps):
    """Gaps are steps forward that are too long."""
    assert measure_steps(np.array(seconds)).uneven == row and find_gaps(np.array(seconds))[0] == gaps


@pytest.mark.parametrize(
    ("times", "interval"),
    [
        (["0", "0.1", "0.2", "0.3"], 0.1),
        (["-5", "0", "5.004"], 5.002),
        (["15.11.2026", "16.11.2026", "17.11.2026"], 86400.0),
        (["15.11.2026 8:30:00", "15.11.2026 08:30:00.5", "15.11.2026T08:30:01"], 0.5),
        (["31.12.2026 23:59", "1.1.2027 0:00"], 60.0),
        (["2026-11-15T20:30:00", "2026-11-15 20:30:00.5", "20261115T203001"], 0.5),
        (["2026-11-15T20:30:00Z", "2026-11-15T21:30:01+01:00"], 1.0),
        (["2026-11-15", "2026-11-16", "2026-11-17"], 86400.0),
        ([0.0, 0.5, 1.0], 0.5),
        (pa.array([3, 4, 5], pa.int32()), 1.0),
        (pa.array(moments(0, 1, 2), pa.timestamp("s", "UTC")), 1.0),
        (pa.array(moments(0, 0.001, 0.002), pa.timestamp("ns", "Europe/Berlin")), 0.001),
        ([date(2026, 11, day) for day in (15, 16, 17)], 86400.0),
    ],
)
def test_the_interval_of_even_times(tmp_path, times, interval):
    """In CSV, and in Parquet where they are no texts."""
    read = times_table(tmp_path, times) if isinstance(times[0], str) else parquet_table(tmp_path, {"t": times})
    assert measure_sampling(read, "t").interval == pytest.approx(interval)


def test_jitter_is_accepted_with_a_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert measure_sampling(times_table(tmp_path, "0 1 2.0005 3"), "t").interval == 1.0
        assert split_at_gaps(times_table(tmp_path, "0 1 2 3"), "t").records == (slice(0, 4),)
    with pytest.warns(
        UserWarning, match=r"t.csv, column 't': steps differ by up to 4.0% from their median, 1; .*1 each"
    ):
        assert measure_sampling(times_table(tmp_path, "0 1 2 3.04 4 5"), "t").interval == 1.0


@pytest.mark.parametrize(
    ("first", "records"), [(0.1 * np.arange(7), 1), (np.array([0.0, 0.1, 0.2, 7.0, 7.1]), 2)], ids=["even", "split"]
)
@pytest.mark.filterwarnings("ignore:.*gap")
def test_tables_share_an_interval(tmp_path, first, records):
    """Intervals that differ only by rounding become one value, since records must have equal intervals."""
    times = {"a.parquet": first, "b.parquet": 33.3 + 0.1 * np.arange(9)}
    tables = [parquet_table(tmp_path, {"t": each}, name) for name, each in times.items()]
    alone = measure_sampling(tables[1], "t").interval
    samplings = measure_together(tables, "t", split_gaps=records > 1)
    assert samplings[0].interval == samplings[1].interval != alone
    assert [len(each.records) for each in samplings] == [records, 1]


@pytest.mark.filterwarnings("ignore:.*steps differ by up to")
def test_a_short_table_with_jitter_has_the_interval_of_a_long_one(tmp_path):
    """Times in whole milliseconds at 30 Hz: the mean step of few rows is not exactly that of many."""
    times = np.round(np.arange(900) / 30.0, 3)
    few = parquet_table(tmp_path, {"t": times[:9]}, "few.parquet")
    many = parquet_table(tmp_path, {"t": times}, "many.parquet")
    check_interval(few, "t", measure_sampling(many, "t").interval)
    assert measure_together([few, many], "t")[0].interval == pytest.approx(1 / 30.0, rel=5e-3)


ALONE = "0 1 2 4 6 7"
MANY = " ".join(f"{10 * begin} {10 * begin + 1} {10 * begin + 2}" for begin in range(10))


@pytest.mark.parametrize(
    ("times", "records", "places"),
    [
        ("0 1 2 4 5", [(0, 3), (3, 5)], r"1 gap\(s\), and the file is split into 2 .* there: line 5 \(from 2 to 4\)$"),
        ("0 1 2 9.5 10.5 99 100", [(0, 3), (3, 5), (5, 7)], r"5 \(from 2 to 9.5\), line 7 \(from 10.5 to 99\)$"),
        ("0 1 9", [(0, 2)], r"1 gap\(s\), and the file is split into 1 record\(s\) there: line 4"),
        (ALONE, [(0, 3), (4, 6)], r"2 gap\(s\), .* into 2 record\(s\)"),
        (ALONE, [(0, 3), (4, 6)], r"t.csv: 1 sample\(s\) alone beside a gap are left out: line 5$"),
        ("2026-01-01 2026-01-02 2026-01-05 2026-01-06", [(0, 2), (2, 4)], r"\(from 2026-01-02 to 2026-01-05\)"),
        (MANY, [(row, row + 3) for row in range(0, 30, 3)], r"9 gap\(s\), .* line 17 \(from 42 to 50\) and 4 more$"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*gap")
def test_gaps_separate_records(tmp_path, times, records, places):
    with pytest.warns(UserWarning, match=places):
        sampling = split_at_gaps(times_table(tmp_path, times), "t")
    assert [(rows.start, rows.stop) for rows in sampling.records] == records
    assert sampling.interval in (1.0, 86400.0)


@pytest.mark.filterwarnings("ignore:.*gap")
def test_jitter_between_gaps_is_noted_once(tmp_path):
    """A record of two samples shows the interval only up to the jitter of the others."""
    with pytest.warns(UserWarning, match="steps differ by up to 4.0% from their median, 1") as caught:
        sampling = split_at_gaps(times_table(tmp_path, "0 1 2.04 3.04 4.04 20 21.04 30 31 32"), "t")
    assert sampling.interval == pytest.approx(1.0, rel=0.02)
    assert len([each for each in caught if "steps differ" in str(each.message)]) == 1
