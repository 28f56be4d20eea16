"""Behaviour common to all commands: errors in one line, help, version, Ctrl-C while modules are imported."""

import signal
import subprocess
import sys

import pytest

import revarb
from revarb import datasets
from support.command_line import COLUMNS, FIT, START, run
from support.processes import environment, run_python
from support.waiting import DEADLINE, read_until


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "train.csv", "-u", "vlave", *START[4:]), "no column 'vlave'; its columns are valve, pressure"),
        (("fit", "nothing.csv", *START[2:]), "cannot read nothing.csv"),
        (("fit", "train.csv", "-u", "valve", "-o", "m.rgp"), "Missing option '-y'"),
        ((*START[:-1], "no/m.rgp"), "the folder no does not exist"),
        ((*START, "--lags", "100"), "has 60 samples, but lags=100"),
        ((*START, "--lags", "x"), "Invalid value for '--lags'"),
        ((*START, "--hidden", "0"), "hidden must be a whole number from 1 to 1000, received 0"),
        ((*START, "--colour", "red"), "No such option: --colour"),
        ((*START, "--config", "bad.toml"), "unknown key 'lag'"),
        ((*START, "--config", "train.csv"), "is not a TOML file"),
        (("simulate", "train.csv", "test.csv", "-o", "p.csv"), "train.csv is not a revarb model"),
        (("simulate", "m.rgp", "test.csv", "-o", "p.csv"), "cannot read the model file m.rgp"),
        (("predict", "m.rgp", "test.csv", "-o", "p.csv"), "cannot read the model file m.rgp"),
        ((*START[:-1], "train.csv"), "would overwrite train.csv, which is read"),
        ((*START[:-1], "."), "it is a folder"),
        ((*START, "--dt", "0.1", "--time", "t"), "dt and a column of times both give the sampling interval"),
        ((*START, "--time", "t"), "train.csv has no column 't'; its columns are valve, pressure"),
        ((*START, "--dt", "0"), "dt must be a finite number above 0, received 0"),
        (("fit", "none.parquet", *START[2:]), "cannot read none.parquet"),
        (("fit", "bad.parquet", *START[2:]), "bad.parquet is not a Parquet file, or it is damaged"),
        ((*START, "--seed", "-1"), "seed must be a whole number from 0 to"),
        (("fit", "train.csv", "-u", "valve", *START[2:]), "column 'valve' is named twice in u"),
        (("fit", "train.csv", "-u", "pressure", *START[4:]), "named as an input and as an output"),
        (("datasets", "fetch", "artificial"), "'artificial' is generated and has no file"),
        (("datasets", "fetch", "drives"), "unknown data set 'drives'"),
        (("compare", "train.csv", "no.csv", *COLUMNS), "cannot read no.csv"),
        (("compare", "train.csv", "test.csv", "-u", "x", "-y", "pressure"), "no column 'x'"),
        (
            ("compare", "train.csv", "test.csv", *COLUMNS, "--only", "GP"),
            "--only GP: there is no such model",
        ),
        (("compare", "train.csv", "test.csv", *COLUMNS, "--jobs", "0"), "Invalid value for '--jobs'"),
        (("compare", "train.csv", "test.csv", *COLUMNS, "--lags", "0"), "lags must be a whole number of at least 1"),
        (("compare", "train.csv", "test.csv", *COLUMNS, "--out", "train.csv"), "cannot create the folder train.csv"),
        (
            ("compare", "compare.json", "test.csv", *COLUMNS, "--out", "."),
            "would overwrite compare.json, which is read",
        ),
        (("reproduce", "table1", "--json", "a", "--page", "a"), "--json and --page both name a"),
        (("reproduce", "table9"), "No such command 'table9'"),
        (("reproduce", "table1", "--seeds", "0"), "Invalid value for '--seeds'"),
    ],
)
def test_a_wrong_argument_is_one_line_and_status_2(capsys, folder, arguments, message):
    (folder / "bad.toml").write_text("lag = 3")
    (folder / "bad.parquet").write_text("u,y")
    (folder / "compare.json").write_bytes((folder / "train.csv").read_bytes())
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert message in err and err.startswith("error: ") and err.count("\n") == 1
    assert out == ""
    assert not (folder / "m.rgp").exists() and not (folder / "p.csv").exists()


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


COMMANDS = ("fit", "simulate", "predict", "check", "demo", "compare", "avatar")
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


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "-h"], ["compare", "-h"], ["reproduce", "field", "-h"]])
def test_help_imports_nothing_that_is_slow(arguments):
    done = run_python("-c", HELP.format(arguments=arguments))
    assert done.returncode == 0 and "Usage: " in done.stdout, done.stderr
    assert done.stdout.endswith("imported:\n")


def test_no_line_of_the_lists_of_commands_is_cut_short(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for arguments in (("-h",), ("reproduce", "-h"), ("datasets", "-h")):
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
