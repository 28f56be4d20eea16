"""Records of `revarb fit` and `revarb compare` as they are: gaps in time, and what is said about their quality."""

import json

import numpy as np
import pytest

from support import small
from support.command_line import COLUMNS, FIT, START, refuse, run, write_record
from support.small_choice import SAMPLES, use_quick_candidates

QUICK = (*FIT[2:], "--no-calibrate")
BASELINE = (*START[2:], "--model", "arx")


@pytest.fixture
def interrupted(folder):
    """A file with 40 rows, an hour without any, 5 rows, and after a lost row 35 more."""
    times = np.concatenate([np.arange(40.0), 3600.0 + np.arange(5.0), 3606.0 + np.arange(35.0)])
    write_record("gaps.csv", small.record(samples=80), times)
    return folder


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_a_gap_in_time_is_refused_with_the_option(capsys, interrupted, command):
    err = refuse(capsys, command, "gaps.csv", "gaps.csv", *COLUMNS, "--time", "t", "-o", "out.rgp")
    assert err.startswith("error: gaps.csv, line 42, column 't': time goes from 39.0 to 3600.0, but it must increase")
    assert err.endswith("or read it as two records with --split-gaps (split_gaps=True)\n")


def test_pieces_that_are_too_short_for_the_lags_are_left_out(capsys, interrupted):
    fit = ("fit", "gaps.csv", *BASELINE, "--time", "t", "--split-gaps")
    code, out, err = run(capsys, *fit, "--lags", "4")
    assert code == 0 and "fitted 2 record(s), 75 samples" in out
    assert "1 of 3 records between gaps in time have fewer than the 12 samples that the lags need, and are left" in err
    assert "fitted 3 record(s)" in run(capsys, *fit, "--lags", "2", "--input-lags", "2")[1]
    code, _, err = run(capsys, *fit, "--lags", "70")
    assert code == 2 and "has the 72 samples that the lags need (the longest has 40); use fewer lags" in err


def test_compare_splits_at_gaps(capsys, interrupted):
    """Files of training and test records stay apart, whatever the number of their pieces."""
    write_record("test.csv", small.record(2, samples=70), np.concatenate([np.arange(30.0), 90.0 + np.arange(40.0)]))
    some = ("--only", "ARX", "--lags", "2", "--input-lags", "2", "--seeds", "1", "--time", "t", "--split-gaps")
    code, _, err = run(capsys, "compare", "gaps.csv", "test.csv", *COLUMNS, *some, "--out", "all")
    assert code == 0 and err.count("gap(s), and the file is split into") == 2
    assert err.count("1 of 3 records between gaps in time have fewer than the 22 samples") == 1
    assert "the first of 2 test records" in (interrupted / "all" / "compare.html").read_text()
    assert json.loads((interrupted / "all" / "compare.json").read_text())["rows"][0]["status"] != "failed"


@pytest.fixture
def clipped(folder, monkeypatch):
    """Training and test files whose output is clipped; quick candidates for a choice."""
    use_quick_candidates(monkeypatch)
    for name, seed in (("train.csv", 0), ("test.csv", 2)):
        record = small.record(seed, samples=SAMPLES)
        write_record(name, record, pressure=np.minimum(record.y[:, 0], 0.5))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("fit", "train.csv", *QUICK),
        ("fit", "train.csv", *BASELINE),
        pytest.param(("fit", "train.csv", *START[2:], "--jobs", "1"), marks=pytest.mark.slow),
        ("compare", "train.csv", "test.csv", *COLUMNS, "--only", "Mean", "--only", "ARX", "--seeds", "2"),
    ],
)
def test_the_quality_of_a_record_is_said_once(capsys, clipped, command):
    code, _, err = run(capsys, *command)
    assert code == 0
    said = [line for line in err.splitlines() if "largest value" in line]
    assert len(said) == 1 and said[0].startswith("warning: output 'pressure' is at its largest value, 0.5, in ")
    assert "(train.csv, line " in said[0] or command[0] == "compare"
