"""The sampling interval of a table, from its column of times."""

import warnings
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from revarb.data.tables.sampling import (
    check_interval,
    common_interval,
    measure_sampling,
    measure_together,
    split_at_gaps,
)
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
        (["15.11.2026", "16.11.2026", "17.11.2026"], 86400.0),
        (["15.11.2026 8:30:00", "15.11.2026 08:30:00.5", "15.11.2026T08:30:01"], 0.5),
        (["31.12.2026 23:59", "1.1.2027 0:00"], 60.0),
        (["2026-11-15T20:30:00", "2026-11-15 20:30:00.5", "20261115T203001"], 0.5),
        (["2026-11-15T20:30:00Z", "2026-11-15T21:30:01+01:00"], 1.0),
        (["2026-11-15", "2026-11-16", "2026-11-17"], 86400.0),
    ],
)
def test_the_interval_of_even_times(tmp_path, times, interval):
    read = csv_table(tmp_path, "t,y\n" + "\n".join(f"{each},1" for each in times))
    assert measure_sampling(read, "t").interval == pytest.approx(interval)


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
    interval = measure_sampling(parquet_table(tmp_path, {"t": column}), "t").interval
    assert interval in (0.5, 1.0, 0.001, 86400.0)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ("0 1 2 4 5", r"t.csv, line 5, column 't': time goes from 2 to 4, but .* even steps \(their median is 1\)"),
        ("0 1 2 2 3", "line 5, column 't': time goes from 2 to 2"),
        ("0 1 2 1.5 2.5 3.5", "line 5, column 't': time goes from 2 to 1.5"),
        ("0 1 2.06 3.06 4.06", "line 4, column 't': time goes from 1 to 2.06"),
        ("4 3 2", r"time goes from 4 to 3, but it must increase .* \(their median is -1\)"),
        ("0", "has a single row"),
        ("0 NA 2", "line 3, column 't': 'NA' is no value"),
        ("0 soon 2", "line 3, column 't': 'soon' is not a number"),
        ("2026-01-01 soon", "line 3, column 't': 'soon' is not a time, neither in seconds nor as in 2026-11-15T20:30"),
        ("01/02/2026 02/02/2026", "line 2, column 't': '01/02/2026' is not a time"),
        ("30.02.2026 01.03.2026", "line 2, column 't': '30.02.2026' is not a time"),
        ("15.11.26 16.11.26", "line 2, column 't': '15.11.26' is not a time"),
        ("2026-01-01 2026-01-02T00:00Z", "some times have a time zone and some have none"),
        ("2026-01-01 2026-01-02 2026-01-03 2026-01-05", r"time goes from 2026-01-03 to 2026-01-05.* is 86400\)"),
    ],
)
def test_uneven_times_are_refused_with_their_place(tmp_path, times, message):
    read = csv_table(tmp_path, "t,y\n" + "\n".join(f"{each},1" for each in times.split()))
    with pytest.raises(InputError, match=message):
        measure_sampling(read, "t")


def test_uneven_times_in_parquet(tmp_path):
    read = parquet_table(tmp_path, {"t": moments(0, 1, 2, 5), "gap": [None, *moments(0, 1, 2)], "text": ["a"] * 4})
    with pytest.raises(InputError, match=r"row 3 \(counted from 0\), column 't': time goes from 2026-11-15T20:30:02"):
        measure_sampling(read, "t")
    with pytest.raises(InputError, match=r"row 0 \(counted from 0\), column 'gap': 'NaT' is no value"):
        measure_sampling(read, "gap")
    with pytest.raises(InputError, match="column 'text' holds values of type string"):
        measure_sampling(read, "text")
    with pytest.raises(InputError, match="has no column 'time'; its columns are t, gap, text"):
        measure_sampling(read, "time")


def test_tables_share_an_interval(tmp_path):
    """Intervals that differ only by rounding become one value, since records must have equal intervals."""
    first = parquet_table(tmp_path, {"t": 0.1 * np.arange(7)}, "a.parquet")
    second = parquet_table(tmp_path, {"t": 33.3 + 0.1 * np.arange(9)}, "b.parquet")
    assert (
        common_interval([first, second], "t")
        == measure_sampling(first, "t").interval
        != measure_sampling(second, "t").interval
    )
    third = parquet_table(tmp_path, {"t": 0.2 * np.arange(9)}, "c.parquet")
    with pytest.raises(InputError, match=r"c.parquet is sampled every 0.2, but .*a.parquet every 0.1; resample one"):
        common_interval([first, second, third], "t")


def test_jitter_is_accepted_with_a_note(tmp_path):
    even = csv_table(tmp_path, "t,y\n" + "\n".join(f"{each},1" for each in (0, 1, 2.0005, 3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert measure_sampling(even, "t").interval == 1.0
    jitter = csv_table(tmp_path, "t,y\n" + "\n".join(f"{each},1" for each in (0, 1, 2, 3.04, 4, 5)))
    with pytest.warns(
        UserWarning, match=r"t.csv, column 't': steps differ by up to 4.0% from their median, 1; .*1 each"
    ):
        assert measure_sampling(jitter, "t").interval == 1.0


@pytest.mark.filterwarnings("ignore:.*steps differ by up to")
def test_a_short_table_with_jitter_has_the_interval_of_a_long_one(tmp_path):
    """Times in whole milliseconds at 30 Hz: the mean step of few rows is not exactly that of many."""
    times = np.round(np.arange(900) / 30.0, 3)
    few = parquet_table(tmp_path, {"t": times[:9]}, "few.parquet")
    many = parquet_table(tmp_path, {"t": times}, "many.parquet")
    check_interval(few, "t", measure_sampling(many, "t").interval)
    assert common_interval([few, many], "t") == pytest.approx(1 / 30.0, rel=5e-3)
    with pytest.raises(
        InputError, match=r"few.parquet is sampled every 0.033\d*, but the model was fitted with dt=0.036"
    ):
        check_interval(few, "t", 0.036)


def times_table(tmp_path, times):
    return csv_table(tmp_path, "t,y\n" + "\n".join(f"{each},1" for each in times.split()))


def test_a_gap_is_refused_with_the_option_that_splits_it(tmp_path):
    read = times_table(tmp_path, "0 1 2 4 5")
    with pytest.raises(
        InputError, match=r"line 5, .*from 2 to 4.* or read it as two records with --split-gaps \(split_g"
    ):
        common_interval([read], "t")
    with pytest.raises(InputError, match=r"or cut it in two there$"):  # of a file to simulate: nothing splits it
        check_interval(read, "t", 1.0)
    with pytest.raises(InputError, match=r"from 2 to 1.5, .*or cut it in two there$"):  # backwards is no gap
        common_interval([times_table(tmp_path, "0 1 2 1.5 2.5 3.5")], "t")


@pytest.mark.parametrize(
    ("times", "pieces", "places"),
    [
        (
            "0 1 2 4 5",
            [(0, 3), (3, 5)],
            r"1 gap\(s\), and the file is split into 2 record\(s\) there: line 5 \(from 2 to 4\)$",
        ),
        (
            "0 1 2 9.5 10.5 99 100 101",
            [(0, 3), (3, 5), (5, 8)],
            r"line 5 \(from 2 to 9.5\), line 7 \(from 10.5 to 99\)$",
        ),
        ("0 1 9", [(0, 2)], r"1 gap\(s\), and the file is split into 1 record\(s\) there: line 4"),
        ("0 1 2 4 6 7", [(0, 3), (4, 6)], r"2 gap\(s\), .* into 2 record\(s\)"),
        ("2026-01-01 2026-01-02 2026-01-05 2026-01-06", [(0, 2), (2, 4)], r"\(from 2026-01-02 to 2026-01-05\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*alone beside a gap")
def test_gaps_separate_records(tmp_path, times, pieces, places):
    with pytest.warns(UserWarning, match=places):
        sampling = split_at_gaps(times_table(tmp_path, times), "t")
    assert [(piece.start, piece.stop) for piece in sampling.pieces] == pieces
    assert sampling.interval in (1.0, 86400.0)


def test_many_gaps_are_counted_and_the_first_ones_named(tmp_path):
    times = " ".join(f"{10 * begin} {10 * begin + 1} {10 * begin + 2}" for begin in range(10))
    with pytest.warns(
        UserWarning, match=r"9 gap\(s\), .* into 10 record\(s\) there: .* line 17 \(from 42 to 50\) and 4 more$"
    ):
        assert len(split_at_gaps(times_table(tmp_path, times), "t").pieces) == 10


@pytest.mark.filterwarnings("ignore:.*2 gap")
def test_a_sample_alone_between_gaps_is_left_out_with_a_warning(tmp_path):
    with pytest.warns(UserWarning, match=r"t.csv: 1 sample\(s\) alone beside a gap are left out: line 5$"):
        split_at_gaps(times_table(tmp_path, "0 1 2 4 6 7"), "t")


def test_a_table_without_gaps_is_not_split(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sampling = split_at_gaps(times_table(tmp_path, "0 1 2 3"), "t")
    assert sampling.pieces == (slice(0, 4),)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ("0 1 2 4 4 5", "line 6, column 't': time goes from 4 to 4"),
        ("0 1 2 9 8 9 10", "line 6, column 't': time goes from 9 to 8"),
        ("0 1 2 9 9.5 20 21 22 23", "line 6, .*from 9 to 9.5"),
        ("0 1 2 9 10 10.5 11 20 21 22 23 24", "line 7, .*from 10 to 10.5"),
        (
            "0 1 2 9 10.04 11.08 12.12 13.16 14.2 20 21 22 23 24 25 26",
            r"between its gaps it is sampled every 1.04 from line 5 to line 10, but every 1 from line 11 to line 17",
        ),
        ("0 1 2 3 4 5 7 9 11 13", "4 of 10 samples stand alone between two gaps, the first in line 8: .*resample"),
        ("3 2 1", "time goes from 3 to 2"),
    ],
)
def test_other_uneven_times_are_refused_with_gaps_split(tmp_path, times, message):
    with pytest.raises(InputError, match=message):
        split_at_gaps(times_table(tmp_path, times), "t")


@pytest.mark.filterwarnings("ignore:.*gap")
def test_jitter_between_gaps_is_noted_once(tmp_path):
    """A piece of two samples shows the interval only up to the jitter of the others."""
    with pytest.warns(UserWarning, match="steps differ by up to 4.0% from their median, 1") as caught:
        sampling = split_at_gaps(times_table(tmp_path, "0 1 2.04 3.04 4.04 20 21.04 30 31 32"), "t")
    assert sampling.interval == pytest.approx(1.0, rel=0.02)
    assert len([each for each in caught if "steps differ" in str(each.message)]) == 1


@pytest.mark.filterwarnings("ignore:.*gap")
def test_split_tables_share_an_interval(tmp_path):
    first = parquet_table(tmp_path, {"t": [0.0, 0.1, 0.2, 7.0, 7.1]}, "a.parquet")
    second = parquet_table(tmp_path, {"t": 0.1 * np.arange(9)}, "b.parquet")
    samplings = measure_together([first, second], "t", split_gaps=True)
    assert [len(each.pieces) for each in samplings] == [2, 1] and samplings[0].interval == samplings[1].interval
    third = parquet_table(tmp_path, {"t": [0.0, 0.2, 0.4, 7.0, 7.2]}, "c.parquet")
    with pytest.raises(InputError, match=r"c.parquet is sampled every 0.2, but .*a.parquet every 0.1; resample one"):
        measure_together([first, third], "t", split_gaps=True)
