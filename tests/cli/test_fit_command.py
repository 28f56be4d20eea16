"""`revarb fit`."""

import os
import pty
import signal
import subprocess
import sys

import pytest

import revarb
from revarb.data.tables.writing import write_table
from support import small
from support.command_line import FIT, START, run, with_cells
from support.journals import count_evaluations
from support.processes import environment
from support.waiting import read_until


def test_several_files_are_several_records(capsys, folder):
    code, out, _ = run(capsys, "fit", "train.csv", "more.csv", *FIT[2:], "--no-calibrate")
    assert code == 0 and "fitted 2 record(s), 120 samples" in out


@pytest.mark.slow
def test_a_fit_reports_its_calibration(capsys, folder):
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

    with count_evaluations() as seen:
        code, out, _ = run(capsys, *quick, "--no-calibrate")
    assert code == 0 and "not calibrated: switched off\n" in out and revarb.load("m.rgp").calibration is None

    with count_evaluations(press_at=len(seen) + 3):  # the fit of the first fold
        code, out, _ = run(capsys, *quick)
    assert code == 0 and "not calibrated: interrupted\n" in out


@pytest.mark.slow
def test_the_picture_of_a_fit_shows_gaps(capsys, folder, drawn):
    assert run(capsys, *FIT)[0] == 0
    with_cells(folder, "gaps.csv", "", [30, *range(40, 44)])
    assert run(capsys, "fit", "train.csv", "gaps.csv", *FIT[2:])[0] == 0
    assert "95 % band, not measured" not in drawn[0][1] and "95 % band, not measured" in drawn[1][1]


def test_a_gap_in_an_input_is_refused(capsys, folder):
    (folder / "gap.csv").write_text((folder / "train.csv").read_text() + ",1.0\n")
    code, _, err = run(capsys, "fit", "gap.csv", *START[2:])
    assert code == 2 and "gap.csv, line 62, column 'valve': '' is no value, and only outputs may be missing" in err


@pytest.mark.slow
def test_ctrl_c_while_compiling_is_deferred_until_there_is_a_model(folder):
    """Before the first evaluation there is no model to keep; after it, the fit returns its initial values."""
    command, variables = [sys.executable, "-m", "revarb", *FIT], environment(JAX_LOG_COMPILES="1")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=variables)
    read_until(process.stderr.fileno(), lambda text: b"Compiling" in text)
    process.send_signal(signal.SIGINT)
    out, err = (text.decode() for text in process.communicate(timeout=120))
    assert process.returncode in (0, 130), (out, err)
    assert "Traceback" not in err
    assert process.returncode == 130 or revarb.load("m.rgp").bound < 0


def test_ctrl_c_during_a_fit_keeps_the_best_model(folder):
    """A real process on a real terminal, a real signal: the progress bar shows, the model so far is on disk."""
    (folder / "long.toml").write_text("lags = 5\ninput_lags = 5\n[[recipe.stages]]\nfree = ['mu']\niterations = 9000\n")
    command = [sys.executable, "-m", "revarb", *START, "--config", "long.toml"]
    ours, theirs = pty.openpty()
    variables = environment(TERM="xterm")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True, env=variables)
    os.close(theirs)
    screen = read_until(ours, lambda text: b"bound" in text)  # the first iteration has been made
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, screen
    assert b"interrupted: the best model so far was kept" in read_until(ours)
    assert "interrupted after" in out and "not calibrated: interrupted\n" in out
    assert revarb.load("m.rgp").status == "interrupted"
    assert (folder / "m.fit.png").exists()
