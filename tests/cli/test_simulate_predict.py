"""`revarb simulate`, `revarb predict` and `revarb check`."""

import matplotlib.image
import numpy as np
import pytest

import revarb
from revarb.data import trajectory
from revarb.data.table_file import Table, write_table
from support import small
from support.command_line import FIT, START, cut, run, succeed, with_cells

KINDS = [
    pytest.param((*FIT, "--hidden", "1"), id="RGP"),
    pytest.param((*FIT, "--hidden", "1", "--restarts", "2"), id="ensemble"),
    pytest.param((*START, "--model", "arx", "--lags", "2", "--input-lags", "2"), id="ARX"),
]


def test_from_csv_to_a_simulated_trajectory(capsys, folder):
    out = succeed(capsys, *FIT)  # no progress bar where there is no terminal
    assert "fitted 1 record(s), 60 samples" in out and "wrote m.rgp" in out
    assert "seed 0: finished after 15 iterations, bound" in out
    model = revarb.load("m.rgp")
    assert "status='finished'" in repr(model) and "finished, seed 0" in str(model.summary())
    assert "not calibrated: the record is too short (fewer than 100 samples once runs have settled)\n" in out
    assert (folder / "m.fit.png").read_bytes().startswith(b"\x89PNG")

    out = succeed(capsys, "simulate", "m.rgp", "test.csv", "-o", "path.csv")
    settling = model.settling.rows
    assert "RMSE" in out and "in 95 %" in out
    assert f"free simulation, cold start, first {settling} rows left out" in out
    path = Table("path.csv")
    marks, values = ("scored", "extrapolates"), ("mean", "std", "lower", "upper")
    assert path.names == ("row", *marks, *(f"pressure_{each}" for each in values))
    row, scored, extrapolates, mean, std, lower, upper = path.columns(path.names).T
    assert set(extrapolates) <= {0.0, 1.0}
    np.testing.assert_array_equal(row, np.arange(60))
    np.testing.assert_array_equal(scored, np.arange(60) >= settling)
    np.testing.assert_allclose((upper - lower) / std, 2 * 1.959964, rtol=1e-5)
    np.testing.assert_allclose((upper + lower) / 2, mean, atol=1e-9)
    assert (folder / "path.png").exists()

    succeed(capsys, "simulate", "m.rgp", "test.csv", "-o", "mean.csv", "--method", "mean")
    assert Table("mean.csv").names == ("row", "scored", "extrapolates", "pressure_mean")


@pytest.mark.parametrize("kind", KINDS)
def test_starts_of_a_simulation(capsys, folder, drawn, kind):
    succeed(capsys, *kind)
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
        out = succeed(capsys, "simulate", "m.rgp", "after.csv", "-o", "p.csv", "--start", choice)
        assert f"free simulation, {name}" in out and "RMSE" in out
        assert drawn[-1][0] == f"after.csv: free simulation, {name}"
        expected = model.simulate(after.columns(["valve"]), start=start).mean
        np.testing.assert_allclose(Table("p.csv").columns(["pressure_mean"]), expected, rtol=1e-6, atol=1e-9)


def test_a_run_can_start_after_the_first_measured_samples(capsys, folder, arx):
    out = succeed(capsys, "simulate", "arx.rgp", "test.csv", "-o", "p.csv", "--start", "measured")
    assert "free simulation, window of 20 samples" in out and "rows left out" not in out
    path, test = Table("p.csv"), Table("test.csv")
    u, y = test.columns(["valve"]), test.columns(["pressure"])
    expected = arx.simulate(u[20:], start=revarb.Window(u[:20], y[:20])).mean
    np.testing.assert_allclose(path.columns(["pressure_mean"]), expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(path.columns(["row"])[:, 0], np.arange(20, 60))
    write_table("inputs.csv", {"valve": u[:, 0]})
    code, _, err = run(capsys, "simulate", "arx.rgp", "inputs.csv", "-o", "p.csv", "--start", "measured")
    assert code == 2 and "--start measured: inputs.csv does not have the outputs ['pressure']" in err


@pytest.mark.parametrize("method", [(), ("--method", "mean")])
def test_a_cold_run_that_starts_far_away_says_so(capsys, folder, method):
    succeed(capsys, *FIT)
    model, record = revarb.load("m.rgp"), small.record(4)
    for shift, far in ((0.0, False), (4.0, True)):
        y = record.y[:, 0] - record.y[0, 0] + model.simulate(record.u).mean[0, 0] + shift * model.scaling.y_std[0]
        write_table("far.csv", {"valve": record.u[:, 0], "pressure": y})
        code, _, err = run(capsys, "simulate", "m.rgp", "far.csv", "-o", "p.csv", *method)
        assert code == 0 and ("hint: the run starts cold, and 'pressure' is 4.0 standard dev" in err) is far
        assert err.count("hint") == far
    succeed(capsys, "simulate", "m.rgp", "far.csv", "-o", "p.csv", "--start", "measured")


@pytest.mark.parametrize("kind", KINDS)
def test_prediction_along_a_measured_record(capsys, folder, drawn, kind):
    succeed(capsys, *kind)
    with_cells(folder, "gaps.csv", "NaN", range(20, 30))
    table = Table("gaps.csv")
    record = revarb.Series(table.columns(["valve"]), table.columns(["pressure"], missing=True))
    for given, name, horizon in (((), "1 step ahead", 1), (("--horizon", "3"), "3 steps ahead", 3)):
        out = succeed(capsys, "predict", "m.rgp", "gaps.csv", "-o", "p.csv", *given)
        assert f"prediction, {name}, first 4 rows left out" in out and "RMSE" in out
        assert drawn[-1][0] == f"gaps.csv: prediction, {name}" and "model" in drawn[-1][1]
        assert Table("p.csv").names[3:5] == ("pressure_mean", "pressure_std")
        np.testing.assert_array_equal(Table("p.csv").columns(["scored"])[:6, 0], [0, 0, 0, 0, 1, 1])
        expected = revarb.load("m.rgp").predict(record, horizon).mean
        np.testing.assert_allclose(Table("p.csv").columns(["pressure_mean"]), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("cell", "lines", "scored", "said"),
    [
        ("", [6], True, ""),
        ("#N/A", [6], True, ""),
        ("NaN", range(2, 62), False, ""),
        ("broken", [6], True, "line 6, column 'pressure': 'broken' is not a number; it counts as miss"),  # one odd cell
    ],
)
def test_the_measured_output_may_have_gaps_or_be_missing(capsys, arx, folder, cell, lines, scored, said):
    with_cells(folder, "gaps.csv", cell, lines)
    code, out, err = run(capsys, "simulate", "arx.rgp", "gaps.csv", "-o", "p.csv")
    assert code == 0 and "wrote p.csv" in out and ("RMSE" in out) is scored
    assert said in err and err.count("not a number") == (said != "")
    write_table("inputs.csv", {"valve": small.record(4).u[:, 0]})  # without the measured output
    out = succeed(capsys, "simulate", "arx.rgp", "inputs.csv", "-o", "p.csv")
    assert "RMSE" not in out and "wrote p.csv" in out


@pytest.mark.slow
def test_sampled_trajectories_and_odd_names(capsys, folder, monkeypatch):
    record = small.record()
    write_table("odd.csv", {"a$^$": record.u[:, 0], "[b]y": record.y[:, 0]})
    out = succeed(capsys, "fit", "odd.csv", "-u", "a$^$", "-y", "[b]y", "--config", "rgp.toml", "-o", "m[1].rgp")
    assert "wrote m[1].rgp" in out
    sampled = ("simulate", "m[1].rgp", "odd.csv", "-o", "p.csv", "--method", "samples", "--samples", "3")
    monkeypatch.setattr(trajectory, "MAX_DISAGREEMENT", 1e9)
    succeed(capsys, *sampled)
    monkeypatch.setattr(trajectory, "MAX_DISAGREEMENT", -1.0)
    code, _, err = run(capsys, *sampled)
    assert code == 0 and err.startswith("warning: samples and moments disagree") and err.count("\n") == 1
    assert Table("p.csv").names[-3:] == ("[b]y_sample0", "[b]y_sample1", "[b]y_sample2")


def test_a_check_says_what_is_left_and_draws_it(capsys, folder, arx):
    out = succeed(capsys, "check", "arx.rgp", "train.csv", "-o", "picture.png", "--max-lag", "8")
    record = small.record(0)
    expected = arx.residuals(revarb.Series(record.u, record.y, 1.0, ["valve"], ["pressure"]), 8)
    (row,) = expected.summary().tables[0].rows
    assert out.splitlines()[0] == expected.sentence
    assert "train.csv\nresiduals one step ahead" in out and "wrote picture.png" in out
    assert all(text in " ".join(out.split()) for text in row)
    assert matplotlib.image.imread("picture.png").shape[1] > 800


def test_a_check_leaves_out_gaps_and_its_picture_has_a_default_name(capsys, folder, arx):
    with_cells(folder, "gaps.csv", "NaN", range(20, 30))
    out = run(capsys, "check", "arx.rgp", "gaps.csv")[1]
    used = 60 - arx.order.skip - 10 - 1  # without the first rows, the gap, and the value after it
    assert f"pressure {used}" in " ".join(out.split()) and (folder / "check.png").exists()
