"""`revarb compare`."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from revarb.data.tables.writing import write_table
from support import small
from support.command_line import COLUMNS, run, with_cells
from support.processes import environment
from support.small_choice import SAMPLES, use_quick_candidates
from support.waiting import read_until


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
    for name in ("compare", "reliability", "mean", "arx", "gp-narx"):
        assert (folder / "all" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "residuals: a model without its own uncertainty" in out
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
    """With ten lags a record this short has no rows outside a held-out piece; the training mean still works."""
    record = small.record(samples=14)
    write_table("short.csv", {"valve": record.u[:, 0], "pressure": record.y[:, 0]})
    some = ("--only", "Mean", "--only", "MLP-NARX", "--seeds", "1")
    code, out, _ = run(capsys, "compare", "short.csv", "test.csv", *COLUMNS, *some)
    assert code == 0 and "MLP-NARX: 1 of 1 seed(s) failed: records of [14] samples leave" in out
    assert "failed: records of" in (folder / "revarb-compare" / "compare.html").read_text()
    code, out, _ = run(capsys, "compare", "short.csv", "test.csv", *COLUMNS, *some[2:], "--out", "none")
    assert code == 0 and out.startswith("Every model failed") and not list((folder / "none").glob("*.png"))


@pytest.mark.parametrize("jobs", [pytest.param("1", marks=pytest.mark.slow), "2"])
def test_ctrl_c_ends_a_comparison_without_a_traceback(folder, jobs):
    command = [sys.executable, "-m", "revarb", "compare", "train.csv", "test.csv", *COLUMNS, "--jobs", jobs]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(JAX_LOG_COMPILES="1"),
        start_new_session=True,
    )  # fmt: skip
    read_until(process.stderr.fileno(), lambda text: b"Compiling" in text)  # a fit is under way
    os.killpg(process.pid, signal.SIGINT)  # to the process group, as from a terminal: the workers receive it too
    out, err = (text.decode() for text in process.communicate(timeout=120))
    assert process.returncode == 130, (out, err)
    assert "Traceback" not in err and "interrupted: stopped before the end" in err
    assert not (folder / "revarb-compare" / "compare.json").exists()


def test_a_comparison_names_the_models_that_need_every_output(capsys, folder):
    with_cells(folder, "gap.csv", "NA", [6, 7])
    some = ("--only", "Mean", "--only", "GP-NARX", "--seeds", "1", "--out", "all")
    code, out, err = run(capsys, "compare", "gap.csv", "gap.csv", *COLUMNS, *some)
    assert code == 0 and err == ""
    reason = "GP-NARX needs every output value, and 2 of 60 are missing; fill them, or use RGP, which accepts missing"
    reason += " outputs"
    assert f"GP-NARX: 1 of 1 seed(s) failed: {reason}" in out and out.startswith("Mean has RMSE")
    assert reason in (folder / "all" / "compare.html").read_text()
    rows = {row["model"]: row for row in json.loads((folder / "all" / "compare.json").read_text())["rows"]}
    assert rows["GP-NARX"]["reason"] == reason and rows["Mean"]["reason"] is None and rows["Mean"]["rmse"] > 0.0


@pytest.mark.slow
def test_a_comparison_with_the_chosen_model(capsys, folder, monkeypatch):
    use_quick_candidates(monkeypatch)
    record = small.record(samples=SAMPLES)
    write_table("train.csv", {"valve": record.u[:, 0], "pressure": record.y[:, 0]})
    some = ("--only", "Mean", "--only", "revarb (chosen)", "--seeds", "1", "--lags", "3", "--out", "all")
    code, out, err = run(capsys, "compare", "train.csv", "test.csv", *COLUMNS, *some)
    assert code == 0 and err == ""
    assert out.startswith("Use revarb (chosen)") and (folder / "all" / "revarb-chosen.png").exists()
    rows = json.loads((folder / "all" / "compare.json").read_text())["rows"]
    assert {row["taken"].partition(", w")[0] for row in rows[1:]} == {"RGP, small, 2 lags"}  # whatever --lags says


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
