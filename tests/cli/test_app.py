"""All commands: warnings in one line, help, version, Ctrl-C while modules are imported. The demo: what README says."""

import json

import pytest

import revarb
from revarb import datasets
from support.command_line import FIT, press_ctrl_c, run, succeed
from support.processes import run_python


def test_a_warning_is_one_line(capsys, folder):
    warning = "warning: inducing=900, but there are only 58 training rows: using 58\n"
    succeed(capsys, *FIT, "--inducing", "900", err=warning)


def test_version_and_data_sets(capsys, recorded_data):
    assert succeed(capsys, "--version").strip() == revarb.__version__
    assert all(name in succeed(capsys, "datasets", "list") for name in datasets.names())
    out = succeed(capsys, "datasets", "fetch", "drive")
    assert out.startswith("drive: ") and "drive.mat" in out


COMMANDS = ("fit", "simulate", "predict", "check", "export", "demo", "compare")
HELP = """
import sys
from revarb.__main__ import main
sys.argv[1:] = {arguments}
try:
    main()
except SystemExit as end:
    slow = {{"jax", "jaxlib", "numpy", "scipy", "matplotlib", "joblib"}} & set(sys.modules)
    print("imported:", *sorted(slow))
    raise
"""


@pytest.mark.parametrize("arguments", [[], ["--help"], ["datasets", "-h"], *([command, "-h"] for command in COMMANDS)])
def test_help_is_complete_and_imports_nothing_that_is_slow(arguments):
    done = run_python("-c", HELP.format(arguments=arguments))
    assert done.returncode == 0 and "Usage: " in done.stdout, done.stderr
    assert done.stdout.endswith("imported:\n")
    assert "..." not in done.stdout.partition("Commands:")[2]  # no line of the lists of commands is cut short
    assert "<bool>" not in done.stdout and "\\[" not in done.stdout  # flags take no value, and brackets are kept
    assert ("a table [recipe]" in " ".join(done.stdout.split())) == (arguments[:1] in (["fit"], ["compare"]))


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_the_defaults_in_the_help_are_those_of_the_model(capsys, command):
    out = " ".join(succeed(capsys, command, "-h").split())
    names = ["lags", "input_lags", "input_delay", "hidden", "latent_dim", *(["inducing"] if command == "fit" else [])]
    for name in names:
        text = out.partition(f" --{name.replace('_', '-')} <int> ")[2].partition(" --")[0]
        assert f"default: {getattr(revarb.RGP(), name)}." in text, name
    assert "k for a dead time of k samples" in out


# Waits inside an import, and says so; like an extension module that loses exceptions of what it imports.
SLOW_IMPORT = """
import builtins, os, sys, time
real = builtins.__import__
def slow(name, *rest, **named):
    if name == {module!r}:
        builtins.__import__ = real
        os.write(2, b"importing\\n")
        try:
            time.sleep(600.0)
        except BaseException:
            pass
    return real(name, *rest, **named)
builtins.__import__ = slow
from revarb.__main__ import main
sys.argv[1:] = {arguments}
main()
"""


@pytest.mark.parametrize("module", ["typer", "jax"])
def test_ctrl_c_while_modules_are_imported_ends_the_process(folder, module):
    program = SLOW_IMPORT.format(module=module, arguments=list(FIT))
    code, _, screen = press_ctrl_c(b"importing", "-c", program)
    assert code == 130 and screen.replace("^C", "") == "importing\ninterrupted: stopped before the end\n"


FILES = ["model.rgp", "scores.json", "simulation.csv", "simulation.png", "test.csv", "train.csv"]


@pytest.mark.slow
def test_what_the_demo_writes_and_shows(capsys, in_empty_folder):
    code, out, err = run(capsys, "demo", "--out", "here", "--seed", 1)
    assert code == 0 and "held-out error" in err  # what is tried is said meanwhile
    assert sorted(path.name for path in (in_empty_folder / "here").iterdir()) == FILES
    ours, arx, mean = rows = json.loads((in_empty_folder / "here" / "scores.json").read_text())["rows"]
    assert [row["model"] for row in rows] == ["revarb", "ARX", "training mean"]
    assert len({row["skip"] for row in rows}) == 1  # the same rows are scored
    assert f"misses the level by {ours['rmse']:.2f} cm" in " ".join(out.split())
    assert ours["nrmse"] <= 0.15 and ours["rmse"] <= 0.5 * arx["rmse"] < mean["rmse"]
    assert 0.9 <= ours["coverage95"] <= 0.99
    [train] = revarb.read_records("here/train.csv", inputs="voltage", outputs="level")
    assert (train.y == datasets.load("two_tanks", seed=1).train.y).all()
