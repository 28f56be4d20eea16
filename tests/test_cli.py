"""The command line in an empty folder."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import revarb
import small
from revarb import cli, datasets
from revarb.data import trajectory
from revarb.data.tables.table import Table
from revarb.data.tables.writing import write_table
from revarb.report import figures

CONFIG = """
lags = 2
input_lags = 2
inducing = 12
[[recipe.stages]]
free = ["mu", "lam", "zeta", "w"]
iterations = 15
"""


def run(capsys, *arguments):
    """Exit status, standard output and standard error of one call."""
    with pytest.raises(SystemExit) as end:
        cli.main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return end.value.code, out, err


@pytest.fixture
def folder(in_empty_folder):
    for name, seed in (("train.csv", 0), ("more.csv", 1), ("test.csv", 2)):
        record = small.record(seed)
        write_table(name, {"valve": record.u[:, 0], "pressure": record.y[:, 0]})
    (in_empty_folder / "rgp.toml").write_text(CONFIG)
    return in_empty_folder


FIT = ("fit", "train.csv", "-u", "valve", "-y", "pressure", "--config", "rgp.toml", "-o", "m.rgp")


def test_from_csv_to_a_simulated_trajectory(capsys, folder):
    code, out, err = run(capsys, *FIT)
    assert code == 0, err
    assert "fitted 1 record(s), 60 samples" in out and "wrote m.rgp" in out
    assert "not calibrated: the record is too short (fewer than 100 samples once runs have settled)\n" in out
    assert err == ""  # no progress bar where there is no terminal
    assert (folder / "m.fit.png").read_bytes().startswith(b"\x89PNG")

    code, out, _ = run(capsys, "simulate", "m.rgp", "test.csv", "-o", "path.csv")
    assert code == 0
    assert "RMSE" in out and "in 95 %" in out and "free simulation, cold start, first 4 rows left out" in out
    path = Table("path.csv")
    assert path.names == ("pressure_mean", "pressure_std", "pressure_lower", "pressure_upper")
    mean, std, lower, upper = path.columns(path.names).T
    assert len(path) == 60
    np.testing.assert_allclose((upper - lower) / std, 2 * 1.959964, rtol=1e-5)
    np.testing.assert_allclose((upper + lower) / 2, mean, atol=1e-9)
    assert (folder / "path.png").exists()

    code, _, _ = run(capsys, "simulate", "m.rgp", "test.csv", "-o", "mean.csv", "--method", "mean")
    assert code == 0 and Table("mean.csv").names == ("pressure_mean",)


def test_several_files_are_several_records(capsys, folder):
    code, out, _ = run(capsys, "fit", "train.csv", "more.csv", *FIT[2:], "--no-calibrate")
    assert code == 0 and "fitted 2 record(s), 120 samples" in out


def test_inputs_without_the_measured_output_are_enough(capsys, folder):
    assert run(capsys, *FIT)[0] == 0
    write_table("inputs.csv", {"valve": small.record(4).u[:, 0]})
    code, out, _ = run(capsys, "simulate", "m.rgp", "inputs.csv", "-o", "p.csv")
    assert code == 0 and "RMSE" not in out and "wrote p.csv" in out


START = ("fit", "train.csv", "-u", "valve", "-y", "pressure", "-o", "m.rgp")
COLUMNS = ("-u", "valve", "-y", "pressure")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "train.csv", "-u", "vlave", *START[4:]), "no column 'vlave'; its columns are valve, pressure"),
        (("fit", "nothing.csv", *START[2:]), "cannot read nothing.csv"),
        (("fit", "train.csv", "-u", "valve", "-o", "m.rgp"), "Missing option '-y'"),
        ((*START[:-1], "no/m.rgp"), "the folder no does not exist"),
        ((*START, "--lags", "100"), "has 60 samples, but lags=100"),
        ((*START, "--lags", "x"), "Invalid value for '--lags'"),
        ((*START, "--hidden", "0"), "hidden must be a whole number from 1 to 1000, received 0"),
        ((*START, "--colour", "red"), "No such option: --colour"),
        ((*START, "--config", "bad.toml"), "unknown key 'lag'"),
        ((*START, "--config", "train.csv"), "is not a TOML file"),
        (("simulate", "train.csv", "test.csv", "-o", "p.csv"), "train.csv is not a revarb model"),
        (("simulate", "m.rgp", "test.csv", "-o", "p.csv"), "cannot read the model file m.rgp"),
        (("predict", "m.rgp", "test.csv", "-o", "p.csv"), "cannot read the model file m.rgp"),
        ((*START[:-1], "train.csv"), "would overwrite train.csv, which is read"),
        ((*START[:-1], "."), "it is a folder"),
        ((*START, "--dt", "0.1", "--time", "t"), "--dt and --time both say how the records are sampled"),
        ((*START, "--time", "t"), "train.csv has no column 't'; its columns are valve, pressure"),
        ((*START, "--dt", "0"), "dt must be a finite number above 0, received 0"),
        (("fit", "none.parquet", *START[2:]), "cannot read none.parquet"),
        (("fit", "bad.parquet", *START[2:]), "bad.parquet is not a Parquet file, or it is damaged"),
        ((*START, "--seed", "-1"), "seed must be a whole number from 0 to"),
        (("fit", "train.csv", "-u", "valve", *START[2:]), "column 'valve' is named twice in u"),
        (("fit", "train.csv", "-u", "pressure", *START[4:]), "named as an input and as an output"),
        (("datasets", "fetch", "artificial"), "'artificial' is generated, there is no file"),
        (("datasets", "fetch", "drives"), "unknown data set 'drives'"),
        (("compare", "train.csv", "no.csv", *COLUMNS), "cannot read no.csv"),
        (("compare", "train.csv", "test.csv", "-u", "x", "-y", "pressure"), "no column 'x'"),
        (
            ("compare", "train.csv", "test.csv", *COLUMNS, "--only", "GP"),
            "--only GP: there is no such model",
        ),
        (("compare", "train.csv", "test.csv", *COLUMNS, "--jobs", "0"), "Invalid value for '--jobs'"),
        (("compare", "train.csv", "test.csv", *COLUMNS, "--lags", "0"), "lags must be a whole number of at least 1"),
        (("compare", "train.csv", "test.csv", *COLUMNS, "--out", "train.csv"), "cannot create the folder train.csv"),
        (
            ("compare", "compare.json", "test.csv", *COLUMNS, "--out", "."),
            "would overwrite compare.json, which is read",
        ),
        (("reproduce", "table1", "--json", "a", "--page", "a"), "--json and --page both name a"),
        (("reproduce", "table9"), "No such command 'table9'"),
        (("reproduce", "table1", "--seeds", "0"), "Invalid value for '--seeds'"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(capsys, folder, arguments, message):
    (folder / "bad.toml").write_text("lag = 3")
    (folder / "bad.parquet").write_text("u,y")
    (folder / "compare.json").write_bytes((folder / "train.csv").read_bytes())
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert message in err and err.startswith("error: ") and err.count("\n") == 1
    assert out == ""
    assert not (folder / "m.rgp").exists() and not (folder / "p.csv").exists()


def test_compare_writes_a_table_a_page_and_pictures(capsys, folder):
    some = ("--only", "Mean", "--only", "ARX", "--only", "GP-NARX", "--lags", "2", "--input-lags", "2")
    code, out, err = run(capsys, "compare", "train.csv", "test.csv", *COLUMNS, *some, "--seeds", "2", "--out", "all")
    assert code == 0, err
    assert err == ""
    content = json.loads((folder / "all" / "compare.json").read_text())
    assert out.startswith(content["meta"]["verdict"])
    assert content["meta"]["command"].startswith("revarb compare train.csv test.csv -u valve -y pressure --only Mean")
    assert [row["model"] for row in content["rows"]] == ["Mean"] * 2 + ["ARX"] * 2 + ["GP-NARX"] * 4
    assert content["meta"]["skip"] == content["rows"][0]["skip"]
    page = (folder / "all" / "compare.html").read_text()
    assert content["meta"]["verdict"] in page and page.count("<svg") == 2
    for name in ("compare", "calibration", "mean", "arx", "gp-narx"):
        assert (folder / "all" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "residuals: a model without an uncertainty of its own" in out
    for text in (
        "GP-NARX",
        "moments",
        "in 95 %",
        "simulate s",
        "wrote all/compare.html",
    ):
        assert text in out


def test_compare_takes_several_records(capsys, folder):
    more = ("--more-train", "more.csv", "--more-test", "more.csv", "--only", "ARX", "--seeds", "1")
    code, out, err = run(capsys, "compare", "train.csv", "test.csv", *COLUMNS, *more)
    assert code == 0 and "wrote revarb-compare/compare.json" in out, err
    assert "the first of 2 test records" in (folder / "revarb-compare" / "compare.html").read_text()


def test_a_failed_rival_does_not_end_a_comparison(capsys, folder):
    """Ten lags leave nothing beside a held-out piece of so short a record; the mean still works."""
    record = small.record(samples=14)
    write_table("short.csv", {"valve": record.u[:, 0], "pressure": record.y[:, 0]})
    some = ("--only", "Mean", "--only", "MLP-NARX", "--seeds", "1")
    code, out, _ = run(capsys, "compare", "short.csv", "test.csv", *COLUMNS, *some)
    assert code == 0 and "MLP-NARX: 1 of 1 seed(s) failed: records of [14] samples leave" in out
    assert "failed: records of" in (folder / "revarb-compare" / "compare.html").read_text()
    code, out, _ = run(capsys, "compare", "short.csv", "test.csv", *COLUMNS, *some[2:], "--out", "none")
    assert code == 0 and out.startswith("No model worked") and not list((folder / "none").glob("*.png"))


@pytest.mark.parametrize("jobs", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_ctrl_c_ends_a_comparison_without_a_traceback(folder, jobs):
    command = [sys.executable, "-m", "revarb", "compare", "train.csv", "test.csv", *COLUMNS, "--jobs", jobs]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    time.sleep(8)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers hear it too
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, (out, err)
    assert "Traceback" not in err and "interrupted: stopped before the end" in err
    assert not (folder / "revarb-compare" / "compare.json").exists()


def test_wrong_columns_and_numbers_at_simulation(capsys, folder):
    assert run(capsys, *FIT)[0] == 0
    write_table("other.csv", {"fan": np.zeros(30)})
    code, _, err = run(capsys, "simulate", "m.rgp", "other.csv", "-o", "p.csv")
    assert code == 2 and "no column 'valve'; its columns are fan" in err
    write_table("short.csv", {"valve": np.zeros(2)})
    code, _, err = run(capsys, "simulate", "m.rgp", "short.csv", "-o", "p.csv")
    assert code == 2 and "u has 2 row(s), but the lags need at least 3" in err
    code, _, err = run(capsys, "simulate", "m.rgp", "test.csv", "-o", "p.csv", "--method", "median")
    assert code == 2 and "--method must be moments, mean, samples or network" in err


@pytest.mark.slow
def test_a_fit_says_what_calibration_found(capsys, folder, monkeypatch):
    write_table(
        "train.csv", {"valve": small.record(samples=150).u[:, 0], "pressure": small.record(samples=150).y[:, 0]}
    )
    quick = (*FIT, "--hidden", "1")
    code, out, err = run(capsys, *quick)
    assert code == 0, err
    found = revarb.load("m.rgp").calibration
    assert f"\ncalibrated on 12 held-out stretches: median error {found.error:.2f} of the output's std; noise" in out
    times = found.output_noise / float(revarb.load("m.rgp").trained.chain.output.sigma2)
    assert f"latent x {found.latent_scale:g}, output x {times:.3g}; long-run band x {found.factors[-1]:.2f}\n" in out

    code, out, _ = run(capsys, *quick, "--restarts", "2")
    errors = sorted(f"{member.calibration.error:.2f}" for member in revarb.load("m.rgp").members)
    text = errors[0] if errors[0] == errors[1] else " to ".join(errors)
    assert code == 0 and out.count("calibrated") == 1 and f"median error {text} of" in out

    code, out, _ = run(capsys, *quick, "--no-calibrate")
    assert code == 0 and "not calibrated: switched off\n" in out and revarb.load("m.rgp").calibration is None

    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("revarb.training.calibrate.prepare", pressed)
    code, out, _ = run(capsys, *quick)
    assert code == 0 and "not calibrated: interrupted\n" in out


def cut(folder, name, begin, end):
    """Some samples of the test file, the header before them."""
    lines = (folder / "test.csv").read_text().splitlines()
    (folder / name).write_text("\n".join([lines[0], *lines[1 + begin : 1 + end]]))


@pytest.fixture
def drawn(monkeypatch):
    """The titles and legends of the pictures that are drawn, in place of the pictures."""
    texts = []

    def noted(figure, kind):
        legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        texts.append((figure.get_suptitle(), legend))
        return b"a picture"

    monkeypatch.setattr(figures, "picture", noted)
    return texts


@pytest.mark.parametrize("several", [(), ("--restarts", "2")])
def test_a_simulation_begins_where_it_is_told(capsys, folder, drawn, several):
    assert run(capsys, *FIT, *several)[0] == 0
    with_cells(folder, "gaps.csv", "", [6, 7])
    (folder / "test.csv").write_text((folder / "gaps.csv").read_text())
    cut(folder, "before.csv", 0, 20)
    cut(folder, "after.csv", 20, 60)
    model, before, after = revarb.load("m.rgp"), Table("before.csv"), Table("after.csv")
    window = revarb.Window(before.columns(["valve"]), before.columns(["pressure"], missing=True))
    for choice, start, name in (
        ("cold", "cold", "cold start"),
        ("continue", "continue", "continued"),
        ("before.csv", window, "window of 20 samples"),
    ):
        code, out, err = run(capsys, "simulate", "m.rgp", "after.csv", "-o", "p.csv", "--start", choice)
        assert code == 0 and err == "" and f"free simulation, {name}" in out and "RMSE" in out
        assert drawn[-1][0] == f"after.csv: free simulation, {name}"
        expected = model.simulate(after.columns(["valve"]), start=start).mean
        np.testing.assert_allclose(Table("p.csv").columns(["pressure_mean"]), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("several", [(), ("--restarts", "2")])
def test_prediction_along_a_measured_record(capsys, folder, drawn, several):
    assert run(capsys, *FIT, "--hidden", "1", *several)[0] == 0
    with_cells(folder, "gaps.csv", "NaN", range(20, 30))
    table = Table("gaps.csv")
    record = revarb.Series(table.columns(["valve"]), table.columns(["pressure"], missing=True))
    for given, name, horizon in (((), "1 step ahead", 1), (("--horizon", "3"), "3 steps ahead", 3)):
        code, out, err = run(capsys, "predict", "m.rgp", "gaps.csv", "-o", "p.csv", *given)
        assert code == 0 and err == "" and f"prediction, {name}, first 4 rows left out" in out and "RMSE" in out
        assert drawn[-1][0] == f"gaps.csv: prediction, {name}" and "model (moments)" in drawn[-1][1]
        assert Table("p.csv").names == ("pressure_mean", "pressure_std", "pressure_lower", "pressure_upper")
        expected = revarb.load("m.rgp").predict(record, horizon).mean
        np.testing.assert_allclose(Table("p.csv").columns(["pressure_mean"]), expected, rtol=1e-6, atol=1e-9)


def test_wrong_starts_and_records(capsys, folder):
    assert run(capsys, *FIT, "--dt", "0.5")[0] == 0
    cut(folder, "before.csv", 0, 20)
    cut(folder, "short.csv", 0, 1)
    write_table("inputs.csv", {"valve": np.zeros(30)})
    write_table("slow.csv", {"t": np.arange(60.0), "valve": small.record().u[:, 0], "pressure": small.record().y[:, 0]})
    write_table("timed.csv", {"t": 0.5 * np.arange(60.0), "valve": small.record().u[:, 0]})
    simulate, predict = ("simulate", "m.rgp", "test.csv", "-o", "p.csv", "--start"), ("predict", "m.rgp")
    choices = "--start takes cold, continue or a file with what was measured just before: "
    for arguments, message in (
        ((*simulate, "warm"), f"{choices}cannot read warm"),
        ((*simulate, "inputs.csv"), f"{choices}inputs.csv has no column 'pressure'; its columns are valve"),
        ((*simulate, "short.csv"), "the record has 1 samples, but the lags need at least 2"),
        ((*simulate[:4], "before.csv", "--start", "before.csv"), "would overwrite before.csv, which is read"),
        ((*predict, "inputs.csv", "-o", "p.csv"), "inputs.csv has no column 'pressure'; its columns are valve"),
        ((*predict, "test.csv", "-o", "p.csv", "--horizon", "0"), "horizon must be a whole number from 1 to"),
        ((*predict, "test.csv", "-o", "test.csv"), "would overwrite test.csv, which is read"),
        ((*predict, "slow.csv", "-o", "p.csv", "--time", "t"), "slow.csv is sampled every 1, but the model was fitted"),
        (
            ("simulate", "m.rgp", "timed.csv", "-o", "p.csv", "--start", "slow.csv", "--time", "t"),
            f"{choices}slow.csv is sampled every 1, but the model was fitted with dt=0.5",
        ),
    ):
        code, out, err = run(capsys, *arguments)
        assert code == 2 and message in err and err.startswith("error: ") and err.count("\n") == 1, arguments
        assert out == "" and not (folder / "p.csv").exists()


@pytest.mark.slow
def test_the_picture_of_a_fit_shows_gaps(capsys, folder, drawn):
    assert run(capsys, *FIT)[0] == 0
    with_cells(folder, "gaps.csv", "", [30, *range(40, 44)])
    assert run(capsys, "fit", "train.csv", "gaps.csv", *FIT[2:])[0] == 0
    assert "95 % band, not measured" not in drawn[0][1] and "95 % band, not measured" in drawn[1][1]


def with_cells(folder, name, cell, lines):
    """The test file with other words in the output column of some lines."""
    text = (folder / "test.csv").read_text().splitlines()
    for line in lines:
        text[line - 1] = f"{text[line - 1].split(',')[0]},{cell}"
    (folder / name).write_text("\n".join(text))


def test_a_gap_in_the_measured_output_is_no_obstacle(capsys, folder):
    assert run(capsys, *FIT)[0] == 0
    with_cells(folder, "gap.csv", "", [6])
    code, out, err = run(capsys, "simulate", "m.rgp", "gap.csv", "-o", "p.csv")
    assert code == 0 and "wrote p.csv" in out and "RMSE" in out and err == ""
    with_cells(folder, "none.csv", "NaN", range(2, 62))
    code, out, err = run(capsys, "simulate", "m.rgp", "none.csv", "-o", "p.csv")
    assert code == 0 and "wrote p.csv" in out and "RMSE" not in out and err == ""
    with_cells(folder, "words.csv", "broken", [6])
    code, out, err = run(capsys, "simulate", "m.rgp", "words.csv", "-o", "p.csv")
    assert code == 0 and "wrote p.csv" in out and "RMSE" not in out
    assert err.startswith("warning: words.csv, line 6, column 'pressure'") and err.count("\n") == 1
    code, _, err = run(capsys, "simulate", "m.rgp", "test.csv", "-o", "test.csv")
    assert code == 2 and "would overwrite test.csv" in err
    code, _, err = run(capsys, "simulate", "m.rgp", "test.csv", "-o", "p.png")
    assert code == 2 and "-o p.png is where the picture goes; choose another ending" in err


def test_a_gap_in_an_input_is_a_mistake(capsys, folder):
    (folder / "gap.csv").write_text((folder / "train.csv").read_text() + ",1.0\n")
    code, _, err = run(capsys, "fit", "gap.csv", *START[2:])
    assert code == 2 and "gap.csv, line 62, column 'valve': '' is no value, and only outputs may be missing" in err


def test_a_comparison_with_gaps_names_who_cannot_do_with_them(capsys, folder):
    with_cells(folder, "gap.csv", "NA", [6, 7])
    some = ("--only", "Mean", "--only", "ARX", "--seeds", "1", "--out", "all")
    code, out, err = run(capsys, "compare", "gap.csv", "gap.csv", *COLUMNS, *some)
    assert code == 0 and err == ""
    reason = "ARX needs every output value, and 2 of 60 are missing; fill them, or use RGP, which can do without"
    assert f"ARX: 1 of 1 seed(s) failed: {reason}" in out and out.startswith("Mean has RMSE")
    assert reason in (folder / "all" / "compare.html").read_text()
    rows = {row["model"]: row for row in json.loads((folder / "all" / "compare.json").read_text())["rows"]}
    assert rows["ARX"]["reason"] == reason and rows["Mean"]["reason"] is None and rows["Mean"]["rmse"] > 0.0


def test_from_parquet_with_times_to_a_simulated_trajectory(capsys, folder):
    for name, seed in (("train", 0), ("test", 2)):
        record, times = small.record(seed), datetime(2026, 1, 1) + 0.25 * np.arange(60) * timedelta(seconds=1)
        columns = {"when": times, "valve": record.u[:, 0], "pressure": record.y[:, 0]}
        pq.write_table(pa.table(columns), f"{name}.parquet")
    code, out, err = run(capsys, "fit", "train.parquet", *FIT[2:], "--time", "when")
    assert code == 0 and "fitted 1 record(s), 60 samples" in out, err
    assert revarb.load("m.rgp").dt == 0.25
    code, out, err = run(capsys, "simulate", "m.rgp", "test.parquet", "-o", "p.csv", "--time", "when")
    assert code == 0 and "RMSE" in out, err
    write_table("slow.csv", {"t": np.arange(60.0), "valve": small.record().u[:, 0]})
    code, _, err = run(capsys, "simulate", "m.rgp", "slow.csv", "-o", "p.csv", "--time", "t")
    assert code == 2 and "slow.csv is sampled every 1, but the model was fitted with dt=0.25; resample" in err


def test_a_comparison_of_files_with_times(capsys, folder):
    for name, first in (("a.csv", 0.0), ("b.csv", 33.3)):
        record = small.record()
        write_table(name, {"t": first + 0.1 * np.arange(60), "valve": record.u[:, 0], "pressure": record.y[:, 0]})
    some = (*COLUMNS, "--only", "Mean", "--seeds", "1", "--time", "t")
    code, _, err = run(capsys, "compare", "a.csv", "b.csv", *some)
    assert code == 0 and err == ""
    text = (folder / "b.csv").read_text().splitlines()
    (folder / "lost.csv").write_text("\n".join([*text[:30], *text[31:]]))
    code, _, err = run(capsys, "compare", "a.csv", "lost.csv", *some)
    assert code == 2 and "lost.csv, line 31, column 't': time goes from 36." in err and "median is 0.1" in err


def test_sampled_trajectories_and_odd_names(capsys, folder, monkeypatch):
    record = small.record()
    write_table("odd.csv", {"a$^$": record.u[:, 0], "[b]y": record.y[:, 0]})
    code, out, err = run(capsys, "fit", "odd.csv", "-u", "a$^$", "-y", "[b]y", "--config", "rgp.toml", "-o", "m[1].rgp")
    assert code == 0 and "wrote m[1].rgp" in out, err
    sampled = ("simulate", "m[1].rgp", "odd.csv", "-o", "p.csv", "--method", "samples", "--samples", "3")
    monkeypatch.setattr(trajectory, "MAX_DISAGREEMENT", 1e9)
    code, _, err = run(capsys, *sampled)
    assert code == 0 and err == ""
    monkeypatch.setattr(trajectory, "MAX_DISAGREEMENT", -1.0)
    code, _, err = run(capsys, *sampled)
    assert code == 0 and err.startswith("warning: samples and moments disagree") and err.count("\n") == 1
    assert Table("p.csv").names[-3:] == ("[b]y_sample0", "[b]y_sample1", "[b]y_sample2")


def test_a_warning_is_one_line(capsys, folder):
    code, _, err = run(capsys, *FIT, "--inducing", "900")
    assert code == 0
    assert err == "warning: inducing=900, but there are only 58 training rows: using 58\n"


def test_nothing_to_resume_is_said_in_one_line(capsys, folder):
    code, out, err = run(capsys, *FIT, "--resume")
    assert code == 0 and "wrote m.rgp" in out
    assert err == "warning: there is no unfinished fit like this one to resume: it starts from the beginning\n"


def test_help_version_and_lists(capsys, in_empty_folder):
    for arguments in ((), ("--help",), ("fit", "--help")):
        code, out, _ = run(capsys, *arguments)
        assert code == 0 and "Usage" in out
    assert run(capsys, "--version")[1].strip() == revarb.__version__
    code, out, _ = run(capsys, "datasets", "list")
    assert code == 0 and all(name in out for name in datasets.names())


def test_datasets_are_fetched(capsys, recorded_data):
    code, out, _ = run(capsys, "datasets", "fetch", "drive")
    assert code == 0 and out.startswith("drive: ") and "drive.mat" in out


def rest_of(terminal):
    """All that is still to be read from a terminal whose other end is closed."""
    text = b""
    while True:
        try:
            text += os.read(terminal, 10_000)
        except OSError:
            return text


def test_ctrl_c_while_compiling_is_held_until_there_is_a_model(folder):
    """Before the first evaluation is compiled there is nothing to keep; the start comes back as soon as there is."""
    program = "from revarb.cli import main; print('imported', flush=True); main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, *FIT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "imported\n"
    time.sleep(1)  # compilation goes on; a little earlier or later the answer is as clean
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode in (0, 130), (out, err)
    assert "Traceback" not in err
    assert process.returncode == 130 or revarb.load("m.rgp").bound < 0


def test_ctrl_c_during_a_fit_keeps_the_best_model(folder):
    """A real process on a real terminal, a real signal: the progress bar shows, the model so far is on disk."""
    (folder / "long.toml").write_text("lags = 5\ninput_lags = 5\n[[recipe.stages]]\nfree = ['mu']\niterations = 9000\n")
    command = [sys.executable, "-m", "revarb", *START, "--config", "long.toml"]
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment)
    os.close(theirs)
    screen = b""
    while b"bound" not in screen:  # the first iteration has been made
        screen += os.read(ours, 10_000)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, screen
    assert b"interrupted: the best model so far was kept" in rest_of(ours)
    assert "interrupted after" in out and "not calibrated: interrupted\n" in out
    assert revarb.load("m.rgp").status == "interrupted"
    assert (folder / "m.fit.png").exists()
