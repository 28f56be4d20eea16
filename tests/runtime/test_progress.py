import threading
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from rich.console import Console

from revarb.runtime import progress
from revarb.runtime.progress import progress_bar, progress_lines
from support.waiting import wait_until

LINE = "[a] is finished\n"
KEPT = f"kept: {LINE}"


@pytest.fixture
def drawn(monkeypatch):
    """The texts that a bar of rich would show, and those that stay above it."""
    texts = []
    bar = SimpleNamespace(
        add_task=lambda *what, **more: 0,
        update=lambda task, completed, text: texts.append(text),
        console=SimpleNamespace(print=lambda text, end, **more: texts.append(f"kept: {text}{end}")),
    )
    monkeypatch.setattr(progress, "Progress", lambda *columns, **more: nullcontext(bar))
    return texts


def run(monkeypatch, show=True, terminal=False, notebook=False, widgets=True):
    console = Console(stderr=True, force_terminal=terminal, force_jupyter=notebook)
    monkeypatch.setattr(progress, "Console", lambda stderr: console)
    monkeypatch.setattr(progress, "find_spec", lambda name: widgets or None)
    with progress_bar("fitting", 10, show) as update:
        update(1, "bound 3")
        update(2, LINE)


@pytest.mark.parametrize(
    ("where", "texts", "log"),
    [
        ({"terminal": True}, ["bound 3", KEPT], ""),
        ({"notebook": True}, ["bound 3", KEPT], ""),
        ({}, [], LINE),
        ({"notebook": True, "widgets": False}, [], LINE),
        ({"show": False, "terminal": True}, [], ""),
        ({"show": False}, [], ""),
    ],
)
def test_a_terminal_and_a_notebook_have_a_bar_and_a_log_has_lines(monkeypatch, capsys, drawn, where, texts, log):
    """A text that ends in a line break is kept, above the bar or in the log."""
    monkeypatch.setattr(progress, "LOG_SECONDS", 1e-3 if "show" in where else 1e6)
    run(monkeypatch, **where)
    assert drawn == texts and capsys.readouterr().err == log


def test_on_a_terminal_a_kept_line_is_written_as_it_is(monkeypatch, capsys):
    """Brackets are no markup of rich."""
    run(monkeypatch, terminal=True)
    assert LINE.strip() in capsys.readouterr().err


def test_a_log_gets_lines_while_nothing_is_reported(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LOG_SECONDS", 1e-3)
    monkeypatch.setattr(progress, "LOG_SHARE", 0.0)
    with progress_lines(["seed 0", "seed 1"], 10, show=True, waiting="compiling") as update:
        wait_until(lambda: "seed 0: compiling (0% of all steps" in capsys.readouterr().err)
        update(1, 5, "bound 3")
        wait_until(lambda: "seed 1: bound 3 (25% of all steps" in capsys.readouterr().err)
    assert "revarb progress" not in [thread.name for thread in threading.enumerate()]
