from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from rich.console import Console

from revarb.runtime import progress
from revarb.runtime.progress import progress_bar


@pytest.fixture
def drawn(monkeypatch):
    """The texts that a bar of rich would show."""
    texts = []
    bar = SimpleNamespace(add_task=lambda *what, **more: 0, update=lambda task, completed, text: texts.append(text))
    monkeypatch.setattr(progress, "Progress", lambda *columns, **more: nullcontext(bar))
    return texts


def run(monkeypatch, show=True, terminal=False, notebook=False, widgets=True):
    console = Console(stderr=True, force_terminal=terminal, force_jupyter=notebook)
    monkeypatch.setattr(progress, "Console", lambda stderr: console)
    monkeypatch.setattr(progress, "find_spec", lambda name: widgets or None)
    with progress_bar("fitting", 10, show) as update:
        update(1, "bound 3")


@pytest.mark.parametrize("where", [{"terminal": True}, {"notebook": True}])
def test_a_terminal_and_a_notebook_have_a_bar(monkeypatch, drawn, where):
    run(monkeypatch, **where)
    assert drawn == ["bound 3"]


@pytest.mark.parametrize("where", [{}, {"terminal": True, "show": False}, {"notebook": True, "widgets": False}])
def test_elsewhere_nothing_is_drawn(monkeypatch, drawn, where):
    run(monkeypatch, **where)
    assert not drawn
