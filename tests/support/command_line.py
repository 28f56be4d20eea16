"""Run a command of revarb in this process, on small CSV files."""

import pytest

from revarb import cli

CONFIG = """
lags = 2
input_lags = 2
inducing = 12
[[recipe.stages]]
free = ["mu", "lam", "zeta", "w"]
iterations = 15
"""


def run(capsys, *arguments):
    """Exit status, standard output and standard error of one call."""
    with pytest.raises(SystemExit) as end:
        cli.main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return end.value.code, out, err


FIT = ("fit", "train.csv", "-u", "valve", "-y", "pressure", "--config", "rgp.toml", "-o", "m.rgp")
START = ("fit", "train.csv", "-u", "valve", "-y", "pressure", "-o", "m.rgp")
COLUMNS = ("-u", "valve", "-y", "pressure")


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
