"""Programs of the documentation run: the gallery, the README, and the guides whose blocks are one program."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fmpy.validation import validate_fmu

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guide"
EXAMPLES = sorted((ROOT / "docs" / "gallery").glob("plot_*.py"))

pytestmark = pytest.mark.slow


def list_blocks(path, kinds="python"):
    return re.findall(rf"```({kinds})\n(.*?)```", path.read_text(), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_of_the_gallery(example, tmp_path):
    done = subprocess.run(
        [sys.executable, example], cwd=tmp_path, env={**os.environ, "MPLBACKEND": "Agg"}, capture_output=True,
        text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_readme(in_empty_folder, capsys):
    names: dict = {}
    for _, block in list_blocks(ROOT / "README.md"):
        exec(block, names)
    assert "rmse" in capsys.readouterr().out.lower()


@pytest.mark.filterwarnings("ignore:.*a numpy function was called on a casadi value:FutureWarning")
def test_the_guide_to_casadi(in_empty_folder):
    *blocks, controller = [block for _, block in list_blocks(GUIDES / "casadi.md")]
    names: dict = {}
    for block in blocks[:3]:
        exec(block, names)
    assert str(names["step"]) == "step:(state[6],u)->(next_state[6],y) MXFunction"
    np.testing.assert_allclose(np.asarray(names["y"]).T, names["path"].mean, rtol=1e-9)
    exec(blocks[3], names)
    np.testing.assert_allclose(np.asarray(names["y"]).T, names["cold"], rtol=1e-9)
    exec(blocks[4], names)
    np.testing.assert_allclose(names["solution"].value(names["y"])[[0, 5, 10]], [0.953, 1.510, 1.500], atol=0.02)
    np.testing.assert_allclose(names["solution"].value(names["u"])[[0, 5, 29]], [1.0, 0.708, 0.716], atol=0.02)
    for block in blocks[5:]:
        exec(block, names)
    assert Path("tank.casadi").is_file() and Path("tank_run.c").is_file()
    run = names["session"].run(["y"], {"u": names["valve"][240:, None], "state": names["state"]})[0]
    np.testing.assert_allclose(run, names["path"].mean, rtol=1e-9)
    np.testing.assert_allclose(names["std"], 0.056, atol=0.002)
    if importlib.util.find_spec("do_mpc") is not None:  # it is no extra of revarb
        exec(controller, names)
        assert abs(names["levels"][-1] - 1.47) < 0.02


def run_bash(text):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(["bash", "-e", "-c", text], capture_output=True, text=True, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_blocks(guide, names):
    """All blocks of a guide; `text` is what the command before it prints, numbers of kilobytes aside."""
    differences, printed = [], ""
    for kind, text in list_blocks(GUIDES / guide, "python|bash|c|text"):
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


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_guides_to_c_and_fmi_agree_with_simulate(in_empty_folder):
    names: dict = {}
    [in_float] = run_blocks("microcontroller.md", names)
    assert in_float < 1e-4
    assert names["line"].startswith("static const tank_real start[TANK_STATES] = {") and names["line"].count("f") == 6
    cold, warm = run_blocks("fmi.md", names)
    assert max(cold, warm) < 1e-11
    assert validate_fmu("rebuilt.fmu") == []


@pytest.mark.parametrize("guide", ["configurations.md", "scikit_learn.md"])
def test_guides_whose_blocks_run_one_after_the_other(guide, in_empty_folder):
    names: dict = {}
    for _, block in list_blocks(GUIDES / guide):
        exec(block, names)
