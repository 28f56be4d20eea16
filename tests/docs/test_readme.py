"""The README is short, and its Python runs."""

import re
from pathlib import Path

README = Path(__file__).parent.parent.parent / "README.md"


def test_it_is_short():
    assert len(README.read_text().splitlines()) <= 120


def test_its_python_runs(recorded_data, in_empty_folder, capsys):
    """All blocks, one after the other, as a reader would paste them."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert blocks
    scope = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), scope)
    assert "rmse" in capsys.readouterr().out.lower()
