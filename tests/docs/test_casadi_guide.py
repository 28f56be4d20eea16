"""The guide "In CasADi and do-mpc": its blocks run one after the other and give the numbers that it states."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "casadi.md"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*a numpy function was called on a casadi value:FutureWarning")
def test_its_program_runs(in_empty_folder):
    *blocks, controller = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
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
