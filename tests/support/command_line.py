"""Run a command of revarb in this process, or in one of its own on a terminal, on small CSV files."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from revarb import cli
from revarb.data.table_file import write_table
from support.processes import environment
from support.waiting import DEADLINE, read_until

CONFIG = """
lags = 2
input_lags = 2
inducing = 12
[[recipe.stages]]
free = ["mu", "lam", "zeta", "w"]
iterations = 15
"""
COLUMNS = ("-u", "valve", "-y", "pressure")
START = ("fit", "train.csv", *COLUMNS, "-o", "m.rgp")
FIT = (*START, "--config", "rgp.toml")


def run(capsys, *arguments):
    """Exit status, standard output and standard error of one call."""
    with pytest.raises(SystemExit) as end:
        cli.main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return end.value.code, out, err


def succeed(capsys, *arguments, err=""):
    """Standard output of a call that ends well, with nothing (or this) on the standard error.

    Models of few iterations may go beyond the range of their training, and say so.
    """
    code, out, said = run(capsys, *arguments)
    said = "".join(line for line in said.splitlines(keepends=True) if "leaves what training has shown" not in line)
    assert (code, said) == (0, err), (code, said)
    return out


def refuse(capsys, *arguments):
    """The one line of a call that is refused."""
    code, _, err = run(capsys, *arguments)
    assert (code, err.count("\n")) == (2, 1), err
    return err


def press_ctrl_c(words, *arguments, **variables):
    """Press Ctrl-C once these words are on the terminal: exit status, standard output, the screen.

    A real process on a real terminal; the signal is for its process group, so that workers receive it, too.
    """
    ours, theirs = pty.openpty()
    variables |= {"TERMINAL": os.ttyname(theirs), "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=theirs, start_new_session=True,
        env=environment(XDG_CACHE_HOME=str(Path("cache").absolute()), **variables),
    )  # fmt: skip
    os.close(theirs)
    screen = read_until(ours, lambda text: words in text)
    os.killpg(process.pid, signal.SIGINT)
    screen += read_until(ours)
    out, _ = process.communicate(timeout=DEADLINE)
    assert b"Traceback" not in screen, screen
    return process.returncode, out.decode(), screen.decode(errors="replace").replace("\r\n", "\n")


def write_record(name, record, t=None, **changed):
    """A record as a table, with a column of times if they are given."""
    times = {} if t is None else {"t": t}
    write_table(name, {**times, "valve": record.u[:, 0], "pressure": record.y[:, 0], **changed})


def cut(folder, name, begin, end):
    """Some samples of the test file, the header before them."""
    lines = (folder / "test.csv").read_text().splitlines()
    (folder / name).write_text("\n".join([lines[0], *lines[1 + begin : 1 + end]]))


def with_cells(folder, name, cell, lines):
    """The test file with other words in the output column of some lines."""
    text = (folder / "test.csv").read_text().splitlines()
    for line in lines:
        text[line - 1] = f"{text[line - 1].split(',')[0]},{cell}"
    (folder / name).write_text("\n".join(text))
