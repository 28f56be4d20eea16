"""Behaviour common to all commands: warnings in one line, help, version, Ctrl-C while modules are imported."""

import signal
import subprocess
import sys

import pytest

import revarb
from revarb import datasets
from support.command_line import FIT, run
from support.processes import environment, run_python
from support.waiting import DEADLINE, read_until


def test_a_warning_is_one_line(capsys, folder):
    code, _, err = run(capsys, *FIT, "--inducing", "900")
    assert code == 0
    assert err == "warning: inducing=900, but there are only 58 training rows: using 58\n"


def test_help_version_and_lists(capsys, in_empty_folder):
    for arguments in ((), ("--help",), ("fit", "--help")):
        code, out, _ = run(capsys, *arguments)
        assert code == 0 and "Usage" in out
    assert run(capsys, "--version")[1].strip() == revarb.__version__
    code, out, _ = run(capsys, "datasets", "list")
    assert code == 0 and all(name in out for name in datasets.names())


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


@pytest.mark.parametrize("arguments", [["--help"], *([command, "-h"] for command in COMMANDS)])
def test_help_imports_nothing_that_is_slow(arguments):
    done = run_python("-c", HELP.format(arguments=arguments))
    assert done.returncode == 0 and "Usage: " in done.stdout, done.stderr
    assert done.stdout.endswith("imported:\n")


def test_no_line_of_the_lists_of_commands_is_cut_short(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for arguments in (("-h",), ("datasets", "-h")):
        code, out, _ = run(capsys, *arguments)
        assert code == 0 and "..." not in out.partition("Commands:")[2], out


@pytest.mark.parametrize("command", COMMANDS)
def test_flags_take_no_value_and_brackets_are_kept(capsys, command):
    code, out, _ = run(capsys, command, "-h")
    assert code == 0 and "<bool>" not in out and "\\[" not in out
    assert ("a table [recipe]" in " ".join(out.split())) == (command in ("fit", "compare"))


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_the_defaults_in_the_help_are_those_of_the_model(capsys, command):
    out = " ".join(run(capsys, command, "-h")[1].split())
    names = ["lags", "input_lags", "input_delay", "hidden", "latent_dim", *(["inducing"] if command == "fit" else [])]
    for name in names:
        text = out.partition(f" --{name.replace('_', '-')} <int> ")[2].partition(" --")[0]
        assert f"default: {getattr(revarb.RGP(), name)}." in text, name
    assert "k for a dead time of k samples" in out


# Waits inside an import, and says so; like an extension module that loses exceptions of what it imports.
SLOW_IMPORT = """
import builtins, sys, time
real = builtins.__import__
def slow(name, *rest):
    if name == {module!r}:
        builtins.__import__ = real
        print("importing", flush=True)
        try:
            time.sleep(600.0)
        except BaseException:
            pass
    return real(name, *rest)
builtins.__import__ = slow
from revarb.__main__ import main
sys.argv[1:] = {arguments}
main()
"""


@pytest.mark.parametrize("module", ["typer", "jax"])
def test_ctrl_c_while_modules_are_imported_ends_the_process(folder, module):
    program = SLOW_IMPORT.format(module=module, arguments=list(FIT))
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    read_until(process.stdout.fileno(), lambda text: b"importing" in text)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130 and err == b"interrupted: stopped before the end\n"


def test_datasets_are_fetched(capsys, recorded_data):
    code, out, _ = run(capsys, "datasets", "fetch", "drive")
    assert code == 0 and out.startswith("drive: ") and "drive.mat" in out
