"""`revarb simulate` and `revarb predict`."""

from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import revarb
from revarb.data import trajectory
from revarb.data.table_file import Table, write_table
from support import small
from support.command_line import FIT, START, cut, run, with_cells
from support.processes import run_python

KINDS = [
    pytest.param((*FIT, "--hidden", "1"), id="RGP"),
    pytest.param((*FIT, "--hidden", "1", "--restarts", "2"), id="ensemble"),
    pytest.param((*START, "--model", "arx", "--lags", "2", "--input-lags", "2"), id="ARX"),
]


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
    assert path.names == ("row", "scored", "pressure_mean", "pressure_std", "pressure_lower", "pressure_upper")
    row, scored, mean, std, lower, upper = path.columns(path.names).T
    np.testing.assert_array_equal(row, np.arange(60))
    np.testing.assert_array_equal(scored, np.arange(60) >= 4)
    assert len(path) == 60
    np.testing.assert_allclose((upper - lower) / std, 2 * 1.959964, rtol=1e-5)
    np.testing.assert_allclose((upper + lower) / 2, mean, atol=1e-9)
    assert (folder / "path.png").exists()

    code, _, _ = run(capsys, "simulate", "m.rgp", "test.csv", "-o", "mean.csv", "--method", "mean")
    assert code == 0 and Table("mean.csv").names == ("row", "scored", "pressure_mean")


def test_inputs_without_the_measured_output_are_enough(capsys, folder):
    assert run(capsys, *FIT)[0] == 0
    write_table("inputs.csv", {"valve": small.record(4).u[:, 0]})
    code, out, _ = run(capsys, "simulate", "m.rgp", "inputs.csv", "-o", "p.csv")
    assert code == 0 and "RMSE" not in out and "wrote p.csv" in out


def test_an_unknown_method_is_refused(capsys, folder):
    assert run(capsys, *FIT)[0] == 0
    # In a separate process: in this one the type checker would refuse `method` first.
    done = run_python("-m", "revarb", "simulate", "m.rgp", "test.csv", "-o", "p.csv", "--method", "median")
    assert done.returncode == 2 and "method must be 'moments', 'mean'" in done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_starts_of_a_simulation(capsys, folder, drawn, kind):
    assert run(capsys, *kind)[0] == 0
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


def test_a_model_that_does_not_know_how_its_records_ended(capsys, folder):
    record = small.record()
    model = revarb.ARX(2, 2).fit(revarb.Series(record.u, record.y, 1.0, ["valve"], ["pressure"]))
    replace(model, final_states=()).save("old.rgp")
    code, _, err = run(capsys, "simulate", "old.rgp", "test.csv", "-o", "p.csv", "--start", "continue")
    assert code == 2 and "does not know how its training records ended" in err and err.count("\n") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_prediction_along_a_measured_record(capsys, folder, drawn, kind):
    assert run(capsys, *kind)[0] == 0
    with_cells(folder, "gaps.csv", "NaN", range(20, 30))
    table = Table("gaps.csv")
    record = revarb.Series(table.columns(["valve"]), table.columns(["pressure"], missing=True))
    for given, name, horizon in (((), "1 step ahead", 1), (("--horizon", "3"), "3 steps ahead", 3)):
        code, out, err = run(capsys, "predict", "m.rgp", "gaps.csv", "-o", "p.csv", *given)
        assert code == 0 and err == "" and f"prediction, {name}, first 4 rows left out" in out and "RMSE" in out
        assert drawn[-1][0] == f"gaps.csv: prediction, {name}" and "model" in drawn[-1][1]
        assert Table("p.csv").names[:4] == ("row", "scored", "pressure_mean", "pressure_std")
        np.testing.assert_array_equal(Table("p.csv").columns(["scored"])[:6, 0], [0, 0, 0, 0, 1, 1])
        expected = revarb.load("m.rgp").predict(record, horizon).mean
        np.testing.assert_allclose(Table("p.csv").columns(["pressure_mean"]), expected, rtol=1e-6, atol=1e-9)


def test_the_measured_output_may_have_gaps(capsys, folder):
    assert run(capsys, *FIT)[0] == 0
    with_cells(folder, "gap.csv", "", [6])
    code, out, err = run(capsys, "simulate", "m.rgp", "gap.csv", "-o", "p.csv")
    assert code == 0 and "wrote p.csv" in out and "RMSE" in out and err == ""
    with_cells(folder, "none.csv", "NaN", range(2, 62))
    code, out, err = run(capsys, "simulate", "m.rgp", "none.csv", "-o", "p.csv")
    assert code == 0 and "wrote p.csv" in out and "RMSE" not in out and err == ""
    with_cells(folder, "words.csv", "broken", [6])
    code, out, err = run(capsys, "simulate", "m.rgp", "words.csv", "-o", "p.csv")
    assert code == 0 and "wrote p.csv" in out and "RMSE" in out  # one odd cell, and all others are scored
    assert err.startswith("warning: words.csv, line 6, column 'pressure': 'broken' is not a number; it counts as miss")
    assert err.count("\n") == 1
    with_cells(folder, "sheet.csv", "#N/A", [6])
    code, out, err = run(capsys, "simulate", "m.rgp", "sheet.csv", "-o", "p.csv")
    assert code == 0 and "RMSE" in out and err == ""


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


@pytest.mark.slow
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
