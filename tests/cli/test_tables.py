"""Tables that commands read and write: sampling, time columns, gaps in time, kinds of files, quality."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import revarb
from revarb.cli.tables import score_table
from revarb.data.table_file import write_table
from revarb.models.container import read_container, write_container
from support import small
from support.command_line import COLUMNS, FIT, START, refuse, run, succeed, write_record
from support.processes import environment
from support.small_choice import SAMPLES, use_quick_candidates

TIMES = 0.5 * np.arange(60)


@pytest.fixture
def model(folder):
    """A linear model that was fitted to a table with a column of times."""
    write_record("timed.csv", small.record(), TIMES)
    [record] = revarb.read_records("timed.csv", inputs="valve", outputs="pressure", time="t")
    fitted = revarb.ARX(2, 2).fit(record)
    fitted.save("arx.rgp")
    return fitted


SIMULATE, PREDICT = ("simulate", "arx.rgp"), ("predict", "arx.rgp")


def test_the_model_remembers_the_column_of_times(model):
    assert model.preprocessor.time_name == revarb.load("arx.rgp").preprocessor.time_name == "t"
    header, arrays = read_container("arx.rgp")
    del header["time_name"]
    write_container("old.rgp", header, arrays)
    assert revarb.load("old.rgp").preprocessor.time_name is None
    write_container("odd.rgp", {**header, "time_name": 3}, arrays)
    with pytest.raises(revarb.InputError, match="a column of times must be named by a text, received 3"):
        revarb.load("odd.rgp")


@pytest.mark.parametrize("command", [SIMULATE, PREDICT])
def test_sampling_is_checked_without_being_asked(capsys, model, command):
    write_record("slow.csv", small.record(2), 2 * TIMES)
    said = refuse(capsys, *command, "slow.csv", "-o", "p.csv")
    assert "slow.csv is sampled every 1, but the model was fitted with dt=0.5" in said
    write_record("shifted.csv", small.record(2), 7 + TIMES)
    succeed(capsys, *command, "shifted.csv", "-o", "p.csv")
    written = pd.read_csv("p.csv")
    assert list(written.columns[:4]) == ["t", "scored", "extrapolates", "pressure_mean"]
    np.testing.assert_array_equal(written["t"], 7 + TIMES)
    succeed(capsys, *command, "test.csv", "-o", "p.csv")  # without the column nothing can be checked
    assert list(pd.read_csv("p.csv").columns[:2]) == ["row", "scored"]


def test_a_run_that_starts_measured_has_the_times_of_its_rows(capsys, model):
    write_record("shifted.csv", small.record(2), 7 + TIMES)
    succeed(capsys, *SIMULATE, "shifted.csv", "-o", "p.csv", "--start", "measured")
    np.testing.assert_array_equal(pd.read_csv("p.csv")["t"], 7 + TIMES[20:])


def test_a_logger_file_from_fit_to_prediction(capsys, folder):
    """Decimal comma, semicolons, units, a comment, dates with the day first, UTF-16."""
    for name, seed in (("train.csv", 0), ("test.csv", 2)):
        write_record(name, small.record(seed))
        table = pd.read_csv(name, index_col=False)
        table.insert(0, "when", pd.date_range("2026-11-15 08:00", periods=60, freq="10s"))
        text = table.to_csv(sep=";", decimal=",", index=False, date_format="%d.%m.%Y %H:%M:%S")
        header, rest = text.split("\n", 1)
        (folder / name).write_bytes(f"# Logger 7\r\n{header}\n;%;bar\n{rest}".encode("utf-16"))
    assert run(capsys, *FIT, "--time", "when")[0] == 0
    assert revarb.load("m.rgp").dt == 10.0
    assert "RMSE" in run(capsys, "predict", "m.rgp", "test.csv", "-o", "p.csv")[1]
    written = pd.read_csv("p.csv")
    assert len(written) == 60 and written["when"][1] == "15.11.2026 08:00:10"


@pytest.mark.parametrize(
    ("times", "label", "first"),
    [(7.0 + TIMES, "t", 7.0), (pd.date_range("2026-01-01", periods=60, freq="500ms"), "seconds after 2026-01-01", 0.0)],
)
def test_pictures_have_the_times_of_the_file(capsys, model, monkeypatch, times, label, first):
    write_record("later.csv", small.record(2), times)
    drawn = []
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda figure, *_, **__: drawn.append(figure.axes[-1]))
    for command in (SIMULATE, PREDICT):
        succeed(capsys, *command, "later.csv", "-o", "p.csv")
    succeed(capsys, "fit", "later.csv", *COLUMNS, "--model", "arx", "--time", "t", "-o", "m.rgp")
    assert [axes.get_xlabel().startswith(label) for axes in drawn[:2]] == [True, True]
    assert drawn[2].get_xlabel() == "time (s)" and {axes.lines[-1].get_xdata()[0] for axes in drawn} == {first}


def test_options_for_other_files(capsys, model, folder):
    text = pd.read_csv("test.csv").to_csv(sep="|", decimal=",", index=False)
    (folder / "odd.csv").write_text(f"Logger|7\nno comment\n{text}")
    said = refuse(capsys, *SIMULATE, "odd.csv", "-o", "p.csv")
    assert "--separator" in said and "--skip-rows" in said
    form = ("--separator", "|", "--skip-rows", "2", "--decimal", ",")
    for arguments in (
        (*SIMULATE, "odd.csv", "-o", "p.csv", *form),
        (*SIMULATE, "odd.csv", "-o", "p.csv", *form, "--start", "odd.csv"),
        (*PREDICT, "odd.csv", "-o", "p.csv", *form),
        ("fit", "odd.csv", *COLUMNS, "--config", "rgp.toml", "-o", "m.rgp", *form),
        ("compare", "odd.csv", "odd.csv", *COLUMNS, "--only", "ARX", "--seeds", "1", *form),
    ):
        succeed(capsys, *arguments)


def test_kinds_of_tables(capsys, model):
    pd.read_csv("timed.csv").to_parquet("timed.parquet")
    assert "fitted 1 record(s), 60 samples" in succeed(capsys, "fit", "timed.parquet", *FIT[2:], "--time", "t")
    assert revarb.load("m.rgp").dt == 0.5
    for name, read in {"p.csv": pd.read_csv, "p.json": pd.read_json, "p.parquet": pd.read_parquet}.items():
        assert f"wrote {name}\nwrote p.png" in succeed(capsys, *SIMULATE, "timed.parquet", "-o", name)
        pd.testing.assert_frame_equal(read(name), pd.read_csv("p.csv"), check_dtype=False)


def test_outputs_with_different_units_are_not_summed_up():
    temperature, flow = (revarb.Scores(rmse, 0.1, 1.0, 0.5, 0.9, 0.95, 2) for rmse in (3.0, 0.2))
    both = revarb.Scores(2.0, 0.2, 0.5, 0.5, 0.9, 0.95, 2, {"temperature": temperature, "flow": flow})
    table = score_table("moments", both, "simulation")
    names, errors = (list(table.columns[number].cells) for number in (0, 1))
    assert names == ["moments, temperature", "moments, flow", "moments, all"] and errors == ["3.000", "0.200", "–"]


@pytest.mark.parametrize("command", [SIMULATE, PREDICT])
def test_a_table_on_the_standard_output_is_alone_there(capsys, model, folder, command):
    before = set(folder.iterdir())
    code, out, err = run(capsys, *command, "timed.csv", "-o", "-")
    assert code == 0 and "RMSE" in err and "wrote" not in err and set(folder.iterdir()) == before
    succeed(capsys, *command, "timed.csv", "-o", "p.csv")
    assert out == (folder / "p.csv").read_text() and out.count("\n") == 61


def test_a_pipe_that_closes_early(model):
    """As in `revarb simulate … -o - | head -n 1`."""
    write_table("long.csv", {"valve": np.zeros(20_000)})
    command = [sys.executable, "-m", "revarb", *SIMULATE, "long.csv", "-o", "/dev/stdout"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith(b"row,scored,extrapolates,pressure_mean")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


BASELINE = (*START[2:], "--model", "arx")


@pytest.fixture
def interrupted(folder):
    """A file with 40 rows, an hour without any, 5 rows, and after a lost row 35 more."""
    times = np.concatenate([np.arange(40.0), 3600.0 + np.arange(5.0), 3606.0 + np.arange(35.0)])
    write_record("gaps.csv", small.record(samples=80), times)
    return folder


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


@pytest.mark.parametrize(
    "command",
    [
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
