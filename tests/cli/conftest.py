"""A folder with small CSV files, and the figures that a command drew."""

import os

import pytest

from revarb.data.tables.writing import write_table
from revarb.report import figures
from support import small
from support.browser import BROWSER
from support.command_line import CONFIG


@pytest.fixture
def folder(in_empty_folder):
    for name, seed in (("train.csv", 0), ("more.csv", 1), ("test.csv", 2)):
        record = small.record(seed)
        write_table(name, {"valve": record.u[:, 0], "pressure": record.y[:, 0]})
    (in_empty_folder / "rgp.toml").write_text(CONFIG)
    return in_empty_folder


@pytest.fixture
def drawn(monkeypatch):
    """The titles and legends of the pictures that are drawn, in place of the pictures."""
    texts = []

    def noted(figure, kind):
        legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        texts.append((figure.get_suptitle(), legend))
        return b"a picture"

    monkeypatch.setattr(figures, "picture", noted)
    return texts


@pytest.fixture
def browser():
    """CI installs one and sets REVARB_BROWSER; elsewhere the test is skipped where there is none."""
    if BROWSER is None and os.environ.get("REVARB_BROWSER") != "required":
        pytest.skip("no chromium on this machine")
    assert BROWSER is not None, "REVARB_BROWSER=required, but there is no chromium"
    return BROWSER
