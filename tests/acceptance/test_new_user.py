"""Acceptance tests: what new users tried on files of their own, by the command line and in Python.

Commands run in processes of their own, in a real terminal where a person would press Ctrl-C.
"""

import gzip
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import revarb
from support.processes import environment, run_python
from support.waiting import DEADLINE, read_until

QUICK = ("--lags", "3", "--input-lags", "3", "--hidden", "1", "--inducing", "20")
ARX = ("--model", "arx", "--lags", "3", "--input-lags", "3")


# The plant and its files ---------------------------------------------------------------------------------------------


def draw(samples=200, seed=0, inputs=1, outputs=1):
    """A saturating plant with one state per output, as a table with a column of times, 4 s apart."""
    rng = np.random.default_rng(seed)
    u = np.repeat(rng.uniform(-1.0, 1.0, (samples // 5 + 1, inputs)), 5, axis=0)[:samples]
    mix = np.random.default_rng(99).normal(size=(inputs, outputs))
    x = np.zeros((samples, outputs))
    for k in range(1, samples):
        x[k] = np.linspace(0.7, 0.9, outputs) * x[k - 1] + 0.3 * np.tanh(2.0 * u[k - 1] @ mix)
    y = x + 0.01 * rng.normal(size=x.shape)
    columns = {"t": 4.0 * np.arange(samples)}
    columns |= {f"u{k}": u[:, k] for k in range(inputs)} | {f"y{k}": y[:, k] for k in range(outputs)}
    return pd.DataFrame(columns)


def series(frame, **options):
    """The record of a table."""
    u, y = (frame[[name for name in frame if name[0] == kind]] for kind in "uy")
    return revarb.Series(u, y, 4.0, **options)


def command(folder, *arguments, status=0):
    """Run `revarb …` in a folder; its standard output and standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "revarb", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def fit_arx(folder, samples=200, **shape):
    """Train an ARX model of a drawn table by the command line: train.csv and m.rgp."""
    frame = draw(samples, **shape)
    frame.to_csv(folder / "train.csv", index=False)
    columns = [part for name in frame if name != "t" for part in (f"-{name[0]}", name)]
    return command(folder, "fit", "train.csv", *columns, "--time", "t", "-o", "m.rgp", *ARX)


# Silent wrong results ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_several_outputs_need_as_many_latent_states(tmp_path):
    """Several outputs: one latent state per layer is too few, and the model says so."""
    train, test = (series(draw(300, seed, inputs=2, outputs=2)) for seed in (0, 1))
    errors = {}
    for states in (1, 2):
        model = revarb.RGP(lags=4, input_lags=4, hidden=1, inducing=40, latent_dim=states).fit(train)
        errors[states] = revarb.scores(model.simulate(test.u), test.y).nrmse
        if states == 1:
            assert model.verdict.endswith("try latent_dim=2 (it has 1 latent state(s) for 2 outputs)")
    assert errors[2] < 0.7 * errors[1]


@pytest.mark.slow
def test_a_sentence_says_whether_the_model_is_usable(tmp_path):
    """After a fit a sentence says whether the model is any good; the usual end of a fit is called finished."""
    draw(150).to_csv(tmp_path / "train.csv", index=False)
    out, _ = command(tmp_path, "fit", "train.csv", "-u", "u0", "-y", "y0", "-o", "m.rgp", *QUICK)
    [sentence] = [line for line in out.splitlines() if "held-out error" in line and "the training mean" in line]
    assert "(ARX 0." in sentence and sentence.endswith(
        (": use it", ": a linear model is better; use revarb.fit or ARX")
    )
    assert "finished" in out and "iteration limit" not in out
    noise = pd.DataFrame({"u0": draw(150)["u0"], "y0": np.random.default_rng(1).normal(size=150)})
    noise.to_csv(tmp_path / "noise.csv", index=False)
    out, _ = command(tmp_path, "fit", "noise.csv", "-u", "u0", "-y", "y0", "-o", "n.rgp", *QUICK)
    assert "no better than the mean, do not use it" in out


def test_data_frames_are_read_by_column_names_and_index(tmp_path):
    """Data frames: columns by name, the same rows, the sampling interval from the index."""
    frame = draw(200, inputs=2).drop(columns="t").set_index(pd.date_range("2026-01-01", periods=200, freq="4s"))
    record = revarb.Series(frame[["u0", "u1"]], frame[["y0"]])
    assert record.dt == 4.0
    model = revarb.ARX(lags=2, input_lags=2).fit(record)
    swapped = model.simulate(frame[["u1", "u0"]])
    np.testing.assert_array_equal(swapped.mean, model.simulate(frame[["u0", "u1"]]).mean)
    gap = frame.drop(frame.index[50])
    for u, y in (
        (frame[["u0"]], frame[["y0"]][::-1]),
        (frame[["u0"]], frame[["y0"]].shift(1, "4s")),
        (gap[["u0"]], gap[["y0"]]),
    ):
        with pytest.raises(revarb.InputError):
            revarb.Series(u, y)


@pytest.mark.slow
def test_a_file_with_another_sampling_interval_is_refused(tmp_path):
    """Sampling: a file of 8 s is refused by a model of 4 s, without --time; jitter is accepted with a note."""
    fit_arx(tmp_path)
    slow = draw(100, seed=1).assign(t=8.0 * np.arange(100))
    slow.to_csv(tmp_path / "slow.csv", index=False)
    for name in ("simulate", "predict"):
        _, err = command(tmp_path, name, "m.rgp", "slow.csv", "-o", "path.csv", status=2)
        assert len(err.splitlines()) == 1 and "sampled every 8" in err
    uneven = draw(100, seed=1)
    uneven.loc[40, "t"] += 0.1
    uneven.to_csv(tmp_path / "uneven.csv", index=False)
    _, err = command(tmp_path, "simulate", "m.rgp", "uneven.csv", "-o", "path.csv")
    assert "warning" in err and "2.5" in err
    model = revarb.load(tmp_path / "m.rgp")
    with pytest.raises(revarb.InputError, match="sampled every 8"):
        model.predict(revarb.Series(slow[["u0"]], slow[["y0"]], 8.0))


def test_inputs_outside_of_the_training_range_are_named(tmp_path):
    """Inputs outside of the training range: which column, how many rows, how far."""
    fit_arx(tmp_path)
    draw(100, seed=1).assign(u0=lambda table: 100.0 * table["u0"]).to_csv(tmp_path / "unit.csv", index=False)
    _, err = command(tmp_path, "simulate", "m.rgp", "unit.csv", "-o", "path.csv")
    assert "input 'u0' leaves its training range" in err


@pytest.mark.slow
def test_every_output_is_scored_in_its_own_unit(tmp_path):
    """Several outputs: every one is scored in its own unit."""
    frame = draw(200, inputs=2, outputs=2)
    frame["y1"] = 300.0 + 20.0 * frame["y1"]
    frame.to_csv(tmp_path / "train.csv", index=False)
    columns = ("-u", "u0", "-u", "u1", "-y", "y0", "-y", "y1")
    command(tmp_path, "fit", "train.csv", *columns, "-o", "m.rgp", *ARX)
    out, _ = command(tmp_path, "simulate", "m.rgp", "train.csv", "-o", "path.csv")
    rows = [line for line in out.splitlines() if "residuals" in line]
    assert len(rows) == 3 and "–" in rows[2]
    out, _ = command(
        tmp_path, "compare", "train.csv", "train.csv", *columns, "--only", "ARX", "--only", "Mean", "--seeds", "1"
    )
    assert "by output" in out
    rows = json.loads((tmp_path / "revarb-compare" / "compare.json").read_text())["rows"]
    assert set(rows[0]["outputs"]) == {"y0", "y1"}


# Files and terminals -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_links_pipes_devices_and_endings_of_output_files(tmp_path):
    """Links stay, pipes and devices are written to, endings say the form."""
    fit_arx(tmp_path)
    (tmp_path / "latest.csv").symlink_to(tmp_path / "path.csv")
    command(tmp_path, "simulate", "m.rgp", "train.csv", "-o", "latest.csv")
    assert (tmp_path / "latest.csv").is_symlink() and (tmp_path / "path.csv").read_text().startswith("t,")
    os.mkfifo(tmp_path / "pipe.csv")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe.csv").read_text()))
    reader.start()
    command(tmp_path, "simulate", "m.rgp", "train.csv", "-o", "pipe.csv")
    reader.join(timeout=DEADLINE)
    assert read[0] == (tmp_path / "path.csv").read_text() and (tmp_path / "pipe.csv").is_fifo()
    for out in ("-", "/dev/stdout"):
        assert command(tmp_path, "simulate", "m.rgp", "train.csv", "-o", out)[0] == read[0]
    for ending, load in (("parquet", pd.read_parquet), ("json", pd.read_json)):
        command(tmp_path, "simulate", "m.rgp", "train.csv", "-o", f"path.{ending}")
        np.testing.assert_allclose(
            load(tmp_path / f"path.{ending}")["y0_mean"], pd.read_csv(tmp_path / "path.csv")["y0_mean"]
        )
    command(tmp_path, "simulate", "m.rgp", "train.csv", "-o", "path.xlsx", status=2)


@pytest.mark.slow
def test_the_table_has_the_times_of_its_inputs(tmp_path):
    """The table has the times of its inputs, and says which rows count."""
    fit_arx(tmp_path)
    command(tmp_path, "simulate", "m.rgp", "train.csv", "-o", "path.csv")
    table, model = pd.read_csv(tmp_path / "path.csv"), revarb.load(tmp_path / "m.rgp")
    np.testing.assert_array_equal(table["t"], 4.0 * np.arange(200))
    assert (table["scored"] == 0).sum() == model.skip and table["scored"].iloc[-1] == 1


@pytest.mark.slow
def test_ctrl_c_while_importing_and_while_fitting(tmp_path):
    """Ctrl-C: quiet while Python imports; an interrupted fit exits with 130, keeps its model and says how to go on."""
    draw(200).to_csv(tmp_path / "train.csv", index=False)
    arguments = ["fit", "train.csv", "-u", "u0", "-y", "y0", "-o", "m.rgp"]
    for when, saved in (("while importing", False), ("in the fit", True)):
        status, screen = press_ctrl_c(tmp_path, [*arguments, "--lags", "5"], when)
        assert status == 130 and "Traceback" not in screen, screen
        assert (tmp_path / "m.rgp").exists() == saved
    assert "--resume" in screen


def press_ctrl_c(folder: Path, arguments: list[str], when: str) -> tuple[int, str]:
    """Run a command in a terminal; press Ctrl-C while Python imports, or when the bar shows a bound."""
    importing = when == "while importing"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *(["-X", "importtime"] if importing else []), "-m", "revarb", *arguments],
        cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env=environment(TERM="xterm", COLUMNS="120"),
    )  # fmt: skip
    os.close(theirs)  # a line of -X importtime, not a number of seconds, says how far it is: the machine may be busy
    shown = read_until(ours, lambda text: b"typer" in text if importing else text.count(b"bound") >= 3)
    os.killpg(process.pid, signal.SIGINT)
    shown += read_until(ours)
    return process.wait(timeout=DEADLINE), shown.decode(errors="replace")


@pytest.mark.slow
def test_a_fork_after_jax_has_started_is_refused(tmp_path):
    """A fork after JAX has started is refused, with the remedy."""
    script = tmp_path / "forked.py"
    script.write_text(FORKED)
    done = run_python(script)
    assert done.returncode == 0 and done.stdout.startswith("this process was forked"), done.stderr


FORKED = """
import multiprocessing, numpy as np, revarb
def fit(number):
    u = np.sin(np.arange(60.0) ** 1.5)
    try:
        return revarb.ARX(2, 2).fit(revarb.Series(u, np.cumsum(u)))
    except revarb.InputError as error:
        return str(error)
if __name__ == "__main__":
    fit(0)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.map(fit, [0])[0])
"""


def test_files_of_data_loggers(tmp_path):
    """Logger files: decimal comma, units, comments, dates, gzip, UTF-16, and what is not a number."""
    frame = draw(200)
    text = logger_text(frame)
    (tmp_path / "logger.csv").write_text(text, encoding="utf-8")
    (tmp_path / "wide.csv").write_text(text, encoding="utf-16")
    with gzip.open(tmp_path / "logger.csv.gz", "wt", encoding="utf-8") as file:
        file.write(text)
    for name in ("logger.csv", "wide.csv", "logger.csv.gz"):
        [record] = revarb.read_records(tmp_path / name, inputs="u0", outputs="y0", time="Zeit")
        assert record.dt == 4.0 and record.missing == 1
        np.testing.assert_allclose(record.u[:, 0], frame["u0"], atol=1e-6)


def logger_text(frame) -> str:
    """A table as a logger in Germany writes it; one cell of y0 says #N/A."""
    times = pd.Timestamp("2026-01-01 12:00") + pd.to_timedelta(frame["t"], unit="s")
    lines = ["# logger 7, line 3", "Zeit;u0;y0", "s;V;K"]
    for row, time in enumerate(times):
        cells = [f"{value:.6f}".replace(".", ",") for value in (frame["u0"][row], frame["y0"][row])]
        lines.append(";".join([time.strftime("%d.%m.%Y %H:%M:%S"), cells[0], "#N/A" if row == 150 else cells[1]]))
    return "\n".join(lines) + "\n"


def test_help_is_quick_and_complete(tmp_path):
    """Help: quick, with defaults, dead time and the table [recipe]."""
    out, _ = command(tmp_path, "fit", "-h")
    flat = " ".join(out.split())
    for words in ("[recipe]", "dead time", "default: 10", "default: 100"):
        assert words in flat, words
    assert "<bool>" not in out
    out, _ = command(tmp_path, "compare", "--help")
    assert all(option in out for option in ("-o", "--latent-dim", "--hidden", "--config", "--resume"))
    code = "import sys; from revarb.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    done = run_python("-c", code + "print([name for name in ('jax', 'scipy', 'matplotlib') if name in sys.modules])")
    assert done.stdout.strip().endswith("[]"), done.stdout[-300:]


# Compare -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_gaps_fail_neither_arx_nor_gp_narx(tmp_path):
    """Gaps in y fail neither ARX nor GP-NARX, and what compare recommends can be fitted by name."""
    frame = draw(200)
    frame.loc[50:60, "y0"] = np.nan
    frame.to_csv(tmp_path / "train.csv", index=False)
    columns = ("-u", "u0", "-y", "y0")
    for name in ("arx", "gp-narx"):
        command(
            tmp_path, "fit", "train.csv", *columns, "--model", name, "--lags", "2", "--input-lags", "2", "-o", "m.rgp"
        )
        command(tmp_path, "simulate", "m.rgp", "train.csv", "-o", "path.csv")
        command(tmp_path, "predict", "m.rgp", "train.csv", "--horizon", "3", "-o", "ahead.csv")
        assert np.isfinite(pd.read_csv(tmp_path / "ahead.csv")["y0_mean"]).all()


# To look at ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pictures_of_many_rows_inputs_and_outputs(tmp_path):
    """Pictures of 20,000 rows, five inputs and six outputs."""
    train, test = series(draw(500, inputs=5, outputs=6)), series(draw(20_000, 1, inputs=5, outputs=6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few inputs are outside of the range of the short training record
        path = revarb.ARX(lags=2, input_lags=2).fit(train).simulate(test.u)
    figure = path.plot(test.y, "20,000 rows")
    figure.savefig(tmp_path / "wide.png", dpi=60)
    assert len(figure.axes) == 5 + 2 * 6
    assert max(len(line.get_xdata()) for axes in figure.axes for line in axes.lines) <= 3000


def test_short_reprs_and_a_hint_for_fit_x_y(tmp_path):
    """Short reprs, and fit(X, y) says what to pass instead (the bar of a notebook: tests/runtime/test_progress.py)."""
    record = series(draw(100))
    model = revarb.ARX(lags=2, input_lags=2).fit(record)
    for value in (record, model, model.simulate(record.u)):
        assert len(repr(value)) < 160
    done = run_python("-c", "import numpy as np, revarb; revarb.fit(np.zeros((9, 1)), np.zeros(9))")
    assert "wrap u and y: fit(revarb.Series(u, y))" in done.stderr


@pytest.mark.slow
def test_the_residual_check_finds_missing_input_lags(tmp_path):
    """Residual analysis: a model with too few input lags is told so."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=1000)
    y = np.convolve(u, [0.0, 0.5, 0.3, 0.0, 0.0, 0.8])[:1000] + 0.1 * rng.normal(size=1000)
    frame = pd.DataFrame({"u0": u, "y0": y})
    frame.to_csv(tmp_path / "train.csv", index=False)
    lags = ("--lags", "1", "--input-lags", "2")
    command(tmp_path, "fit", "train.csv", "-u", "u0", "-y", "y0", "--model", "arx", *lags, "-o", "m.rgp")
    out, _ = command(tmp_path, "check", "m.rgp", "train.csv", "-o", "check.png")
    assert "lag 5" in out and (tmp_path / "check.png").stat().st_size > 10_000
