"""`revarb export`."""

import sys

import numpy as np
import onnx
import pytest

import revarb
from support import small
from support.c_programs import build, run_program
from support.command_line import press_ctrl_c, succeed
from support.export_formats import needs_compiler


@pytest.fixture
def model(folder):
    record = small.record(samples=200)
    fitted = revarb.ARX(2, 2).fit(revarb.Series(record.u, record.y, 0.5, ["valve"], ["pressure [bar]"]))
    fitted.save("m.rgp")
    return fitted


def list_new(folder):
    """What an export left beside the files that were there."""
    before = {"m.rgp", "train.csv", "more.csv", "test.csv", "rgp.toml"}
    return sorted(path.name for path in folder.iterdir() if path.name not in before)


@needs_compiler
@pytest.mark.parametrize(("option", "tolerance"), [((), 1e-9), (("--float",), 1e-3)])
def test_c_files_that_compile_and_simulate(capsys, folder, model, option, tolerance):
    arguments = ("--to", "c", "-o", "tank.c", "--name", "pump", "--unit", "valve=%")
    out = succeed(capsys, "export", "m.rgp", *arguments, *option)
    sizes = {name: (folder / name).stat().st_size / 1000 for name in ("tank.h", "tank.c")}
    assert out == "".join(f"wrote {name}, {size:.1f} kB\n" for name, size in sizes.items())
    assert list_new(folder) == ["tank.c", "tank.h"]
    header = (folder / "tank.h").read_text()
    assert '"valve", unit "%"' in header and '"pressure [bar]", unit "bar"' in header and "void pump_step(" in header
    u = small.record(3).u
    found, _ = run_program(build(folder / "tank.c"), u, 1)
    np.testing.assert_allclose(found, model.simulate(u).mean, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("ending", ["onnx", "casadi", pytest.param("fmu", marks=needs_compiler)])
def test_the_ending_says_the_format(capsys, folder, model, ending):
    out = succeed(capsys, "export", "m.rgp", "-o", f"x.{ending}")
    assert out.startswith(f"wrote x.{ending}, ") and out.endswith(" kB\n")
    assert list_new(folder) == [f"x.{ending}"]


@pytest.mark.parametrize("option", ["--with-std", "--step"])
def test_onnx_files_of_the_step(capsys, folder, option):
    small.spec().fit(small.record()).save("m.rgp")
    succeed(capsys, "export", "m.rgp", "-o", "x.onnx", option)
    names = [each.name for each in onnx.load("x.onnx").graph.output]
    assert names == (["next_state", "y", "std"] if option == "--with-std" else ["next_state", "y"])


@pytest.mark.skipif(sys.platform.startswith("win"), reason="signals of POSIX")
def test_ctrl_c_while_an_fmu_is_compiled_leaves_nothing(folder, model):
    """A compiler that never ends, and a SIGINT for the group, as a terminal sends it."""
    slow = folder / "slow-cc"
    slow.write_text("#!/bin/sh\necho started > $TERMINAL\nexec sleep 600\n")
    slow.chmod(0o755)
    command = ("-m", "revarb", "export", "m.rgp", "-o", "x.fmu")
    code, _, screen = press_ctrl_c(b"started", *command, CC=str(slow), TMPDIR=str(folder))
    assert code == 130 and screen == "started\ninterrupted: stopped before the end\n"
    assert list_new(folder) == ["cache", "slow-cc"]
