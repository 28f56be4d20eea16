"""`revarb fit --resume` after a kill."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import revarb
from revarb import cli
from revarb.models.fitted_rgp import FittedRGP
from support.command_line import CONFIG, FIT, succeed
from support.journals import Killed, assert_same, entry_ends
from support.processes import environment, run_python
from support.waiting import wait_until

LONG = "calibrate = false\n" + CONFIG.replace("[[", "[recipe]\nftol = 0.0\ngtol = 0.0\n[[")


def fit_long(capsys, iterations):
    """The model of a long command, without its file."""
    Path("rgp.toml").write_text(LONG.replace("15", str(iterations)))
    succeed(capsys, *FIT)
    whole = revarb.load("m.rgp")
    Path("m.rgp").unlink()
    return whole


def test_a_killed_command_resumes_to_the_same_file(capsys, folder, unfinished):
    whole = fit_long(capsys, 300)
    # By SIGKILL at the 90th evaluation of the bound.
    done = run_python("-m", "support.killed_fit", unfinished.parent.parent, 90, *FIT)
    assert done.returncode == -signal.SIGKILL, done.stderr
    [path] = unfinished.iterdir()
    assert len(entry_ends(path.read_bytes())) == 1 + 89 and not Path("m.rgp").exists()
    succeed(capsys, *FIT, "--resume")
    assert_same(revarb.load("m.rgp"), whole)
    assert not path.exists()


@pytest.mark.slow
def test_killed_repeatedly_at_any_moment(capsys, folder, unfinished, record_property, rng):
    """Kill the process from outside at arbitrary moments, until one run ends by itself."""
    whole, kills, before = fit_long(capsys, 2000), 0, 0
    program = [sys.executable, "-m", "support.killed_fit", str(unfinished.parent.parent), "-1", *FIT]
    while not Path("m.rgp").exists():
        command = [*program, *(["--resume"] if kills else [])]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment())
        wait_for_progress(process, unfinished, before)
        time.sleep(float(rng.uniform(0.0, 0.5)))
        kills += process.poll() is None
        process.kill()
        process.wait()
        before = noted_bytes(unfinished)
    assert_same(revarb.load("m.rgp"), whole)
    record_property("fuzzed", f"killed fits: {kills} kills of one, then the same model file as without")
    assert kills > 3


def wait_for_progress(process, folder, before):
    wait_until(lambda: process.poll() is not None or noted_bytes(folder) > before, every=0.002)


def noted_bytes(folder):
    return sum(path.stat().st_size for path in folder.glob("*.journal"))


@pytest.mark.slow
def test_the_journal_stays_until_the_model_is_on_disk(folder, unfinished, at_once, monkeypatch):
    def killed(self, path):
        raise Killed

    monkeypatch.setattr(FittedRGP, "save", killed)
    with pytest.raises(Killed):
        cli.main(FIT)
    [_] = unfinished.iterdir()


def test_nothing_to_resume_is_a_warning_of_one_line(capsys, folder):
    warning = "warning: there is no unfinished fit like this one to resume: it starts from the beginning\n"
    assert "wrote m.rgp" in succeed(capsys, *FIT, "--resume", err=warning)
