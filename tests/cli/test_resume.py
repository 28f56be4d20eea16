"""`revarb fit --resume` after a kill."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import revarb
from revarb import cli
from revarb.data.table_file import write_table
from revarb.models.fitted_rgp import FittedRGP
from support import small
from support.command_line import run
from support.journals import Killed, assert_same, entry_ends
from support.processes import environment, run_python
from support.waiting import wait_until

LONG = (
    "calibrate = false\nlags = 2\ninput_lags = 2\ninducing = 12\n[recipe]\nftol = 0.0\ngtol = 0.0\n[[recipe.stages]]\n"
)
LONG += "free = ['mu', 'lam', 'zeta', 'w']\niterations = {iterations}\n"
FIT = ("fit", "train.csv", "-u", "u", "-y", "y", "--config", "rgp.toml", "-o", "m.rgp")


@pytest.fixture
def long_command(in_empty_folder):
    record = small.record()
    write_table("train.csv", {"u": record.u[:, 0], "y": record.y[:, 0]})
    (in_empty_folder / "rgp.toml").write_text(LONG.format(iterations=300))
    return in_empty_folder


def killed(cache, evaluation):
    """Run a command in a process that ends itself by SIGKILL at that evaluation of the bound."""
    return run_python("-m", "support.killed_fit", cache, evaluation, *FIT)


def command_line(*arguments):
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 0


def test_a_killed_command_resumes_to_the_same_file(long_command, unfinished, capsys):
    cache = unfinished.parent.parent
    command_line(*FIT)
    whole = revarb.load("m.rgp")
    Path("m.rgp").unlink()
    done = killed(cache, 90)
    assert done.returncode == -signal.SIGKILL, done.stderr
    [path] = unfinished.iterdir()
    assert len(entry_ends(path.read_bytes())) == 1 + 89 and not Path("m.rgp").exists()
    command_line(*FIT, "--resume")
    assert_same(revarb.load("m.rgp"), whole)
    assert "warning" not in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.slow
def test_killed_repeatedly_at_any_moment(long_command, unfinished, record_property, rng):
    """Kill the process from outside at arbitrary moments, until one run ends by itself."""
    (long_command / "rgp.toml").write_text(LONG.format(iterations=2000))
    cache, kills, before = unfinished.parent.parent, 0, 0
    command_line(*FIT)
    whole = revarb.load("m.rgp")
    Path("m.rgp").unlink()
    program = [sys.executable, "-m", "support.killed_fit", str(cache), "-1", *FIT]
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
def test_the_journal_stays_until_the_model_is_on_disk(long_command, unfinished, at_once, monkeypatch):
    def killed(self, path):
        raise Killed

    monkeypatch.setattr(FittedRGP, "save", killed)
    with pytest.raises(Killed):
        cli.main(FIT)
    [_] = unfinished.iterdir()


def test_nothing_to_resume_is_a_warning_of_one_line(capsys, long_command):
    code, out, err = run(capsys, *FIT, "--resume")
    assert code == 0 and "wrote m.rgp" in out
    assert err == "warning: there is no unfinished fit like this one to resume: it starts from the beginning\n"
