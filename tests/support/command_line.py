"""Run a command of revarb in this process, on small CSV files."""

import pytest

from revarb import cli
from revarb.data.table_file import write_table

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
    """Standard output of a call that ends well, with nothing (or this) on the standard error."""
    code, out, said = run(capsys, *arguments)
    assert (code, said) == (0, err)
    return out


def refuse(capsys, *arguments):
    """The one line of a call that is refused."""
    code, _, err = run(capsys, *arguments)
    assert (code, err.count("\n")) == (2, 1), err
    return err


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
