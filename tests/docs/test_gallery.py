"""The examples of the gallery run from start to end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).parent.parent.parent / "docs" / "gallery"
EXAMPLES = sorted(GALLERY.glob("plot_*.py"))


def test_the_gallery_has_examples():
    assert EXAMPLES


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example, tmp_path):
    finished = subprocess.run(
        [sys.executable, example],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
