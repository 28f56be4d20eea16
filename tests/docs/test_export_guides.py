"""The guides "On a microcontroller" and "In Simulink and other FMI tools": their commands run, one after the other."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fmpy.validation import validate_fmu

GUIDES = Path(__file__).parents[2] / "docs" / "guide"

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def list_blocks(guide):
    return re.findall(r"```(python|bash|c|text)\n(.*?)```", (GUIDES / guide).read_text(), re.DOTALL)


def run_bash(text):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(["bash", "-e", "-c", text], capture_output=True, text=True, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_blocks(guide, names):
    """All blocks of a guide; `text` is what the command before it prints, numbers of kilobytes aside."""
    differences, printed = [], ""
    for kind, text in list_blocks(guide):
        if kind == "bash":
            printed = run_bash(text)
        elif kind == "c":
            Path("main.c").write_text(text)
        elif kind == "text":
            assert re.sub(r"[\d.]+ kB", "kB", text) in re.sub(r"[\d.]+ kB", "kB", printed)
        else:
            names.pop("difference", None)
            exec(text, names)
            differences += [names["difference"]] if "difference" in names else []
    return differences


@pytest.mark.slow
def test_their_programs_run_and_agree_with_simulate(in_empty_folder):
    names: dict = {}
    [in_float] = run_blocks("microcontroller.md", names)
    assert in_float < 1e-4
    assert names["line"].startswith("static const tank_real start[TANK_STATES] = {") and names["line"].count("f") == 6
    cold, warm = run_blocks("fmi.md", names)
    assert max(cold, warm) < 1e-11
    assert validate_fmu("rebuilt.fmu") == []
