"""`revarb fit --resume` after a kill."""

import signal
from pathlib import Path

import pytest

import revarb
from revarb import cli
from revarb.models.fitted_rgp import FittedRGP
from support.command_line import CONFIG, FIT, succeed
from support.journals import Killed, assert_same, entry_ends
from support.processes import run_python

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
