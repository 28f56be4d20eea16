"""The sampling interval of a table, from its column of times."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from revarb.data.tables.sampling import common_interval, sampling_interval
from revarb.errors import InputError
from support.tables import csv_table, parquet_table

START = datetime(2026, 11, 15, 20, 30, tzinfo=UTC)


def moments(*seconds):
    return [START + timedelta(seconds=each) for each in seconds]


@pytest.mark.parametrize(
    ("times", "interval"),
    [
        (["0", "0.1", "0.2", "0.3"], 0.1),
        (["-5", "0", "5.004"], 5.002),
        (["2026-11-15T20:30:00", "2026-11-15 20:30:00.5", "20261115T203001"], 0.5),
        (["2026-11-15T20:30:00Z", "2026-11-15T21:30:01+01:00"], 1.0),
        (["2026-11-15", "2026-11-16", "2026-11-17"], 86400.0),
    ],
)
def test_the_interval_of_even_times(tmp_path, times, interval):
    read = csv_table(tmp_path, "t,y\n" + "\n".join(f"{each},1" for each in times))
    assert sampling_interval(read, "t") == pytest.approx(interval)


@pytest.mark.parametrize(
    "column",
    [
        [0.0, 0.5, 1.0],
        pa.array([3, 4, 5], pa.int32()),
        pa.array(moments(0, 1, 2), pa.timestamp("s", "UTC")),
        pa.array(moments(0, 0.001, 0.002), pa.timestamp("ns", "Europe/Berlin")),
        [date(2026, 11, day) for day in (15, 16, 17)],
    ],
)
def test_the_interval_of_even_times_in_parquet(tmp_path, column):
    interval = sampling_interval(parquet_table(tmp_path, {"t": column}), "t")
    assert interval in (0.5, 1.0, 0.001, 86400.0)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ("0 1 2 4 5", r"t.csv, line 5, column 't': time goes from 2 to 4, but .* even steps \(their median is 1\)"),
        ("0 1 2 2 3", "line 5, column 't': time goes from 2 to 2"),
        ("0 1 2 1.5 2.5 3.5", "line 5, column 't': time goes from 2 to 1.5"),
        ("0 1 2.002 3.002 4.002", "line 4, column 't': time goes from 1 to 2.002"),
        ("4 3 2", r"time goes from 4 to 3, but it must increase .* \(their median is -1\)"),
        ("0", "has a single row"),
        ("0 NA 2", "line 3, column 't': 'NA' is no value"),
        ("0 soon 2", "line 3, column 't': 'soon' is not a number"),
        ("2026-01-01 soon", "line 3, column 't': 'soon' is not a time, neither in seconds nor in ISO 8601"),
        ("2026-01-01 2026-01-02T00:00Z", "some times have a time zone and some have none"),
        ("2026-01-01 2026-01-02 2026-01-03 2026-01-05", r"time goes from 2026-01-03 to 2026-01-05.* is 86400\)"),
    ],
)
def test_uneven_times_are_refused_with_their_place(tmp_path, times, message):
    read = csv_table(tmp_path, "t,y\n" + "\n".join(f"{each},1" for each in times.split()))
    with pytest.raises(InputError, match=message):
        sampling_interval(read, "t")


def test_uneven_times_in_parquet(tmp_path):
    read = parquet_table(tmp_path, {"t": moments(0, 1, 2, 5), "gap": [None, *moments(0, 1, 2)], "text": ["a"] * 4})
    with pytest.raises(InputError, match=r"row 3 \(counted from 0\), column 't': time goes from 2026-11-15T20:30:02"):
        sampling_interval(read, "t")
    with pytest.raises(InputError, match=r"row 0 \(counted from 0\), column 'gap': 'NaT' is no value"):
        sampling_interval(read, "gap")
    with pytest.raises(InputError, match="column 'text' holds values of type string"):
        sampling_interval(read, "text")
    with pytest.raises(InputError, match="has no column 'time'; its columns are t, gap, text"):
        sampling_interval(read, "time")


def test_tables_share_an_interval(tmp_path):
    """Intervals that differ only by rounding become one value, since records must have equal intervals."""
    first = parquet_table(tmp_path, {"t": 0.1 * np.arange(7)}, "a.parquet")
    second = parquet_table(tmp_path, {"t": 33.3 + 0.1 * np.arange(9)}, "b.parquet")
    assert common_interval([first, second], "t") == sampling_interval(first, "t") != sampling_interval(second, "t")
    third = parquet_table(tmp_path, {"t": 0.2 * np.arange(9)}, "c.parquet")
    with pytest.raises(InputError, match=r"c.parquet is sampled every 0.2, but .*a.parquet every 0.1; resample one"):
        common_interval([first, second, third], "t")
