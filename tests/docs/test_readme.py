"""The README is short, its Python runs, and its table has the numbers of the committed results."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"


def import_script(path):
    """Import a Python file that belongs to no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_short():
    lines = README.read_text().splitlines()
    assert len(lines) <= 100 and max(map(len, lines)) <= 120


@pytest.mark.slow
def test_its_python_runs(in_empty_folder, capsys):
    """All blocks, one after the other, as a reader would paste them."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert blocks
    scope = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), scope)
    assert "rmse" in capsys.readouterr().out.lower()


def test_its_table_is_that_of_the_results():
    tables = import_script(ROOT / "docs" / "results_tables.py")
    assert tables.marked(README.read_text(), "readme") == tables.block("readme")
