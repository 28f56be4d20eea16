"""What the commands refuse: one line on the standard error, exit status 2, no output, no file."""

import shlex

import numpy as np
import pytest

import revarb
from revarb.data.table_file import write_table
from support import small
from support.command_line import run
from support.processes import run_python

FIT = "fit train.csv -u valve -y pressure -o m.rgp"
REFIT = "fit train.csv more.csv --from rgp.rgp -o m.rgp"
COMPARE = "compare train.csv test.csv -u valve -y pressure"
START = "--start takes cold, measured, continue or a table measured before: "


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with tables, configurations and models of three kinds; no refused command changes it."""
    folder = tmp_path_factory.mktemp("refusals")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        plain = small.record()
        valve, pressure = plain.u[:, 0], plain.y[:, 0]
        for name in ("train.csv", "more.csv", "test.csv", "compare.json", "table.png"):
            write_table("table.csv", {"valve": valve, "pressure": pressure})
            (folder / "table.csv").rename(name)
        write_table("inputs.csv", {"valve": valve})
        write_table("fan.csv", {"fan": valve, "pressure": pressure})
        write_table("slow.csv", {"t": 2.0 * np.arange(60.0), "valve": valve, "pressure": pressure})
        write_table("unsorted.csv", {"t": np.arange(60.0)[::-1], "valve": valve, "pressure": pressure})
        write_table("timed.csv", {"t": np.arange(60.0), "valve": valve})
        for name, samples in (("five", 5), ("few", 15), ("twenty", 20)):
            write_table(f"{name}.csv", {"valve": valve[:samples], "pressure": pressure[:samples]})
        (folder / "rgp.toml").write_text("lags = 2")
        (folder / "bad.toml").write_text("lag = 3")
        record = revarb.Series(plain.u, plain.y, 1.0, ["valve"], ["pressure"])
        for name, spec in {"rgp": small.spec(hidden=1), "arx": revarb.ARX(2, 2), "mean": revarb.Mean()}.items():
            spec.fit(record).save(f"{name}.rgp")
    return folder


CASES = [
    # Files and columns
    ("fit train.csv -u vlave -y pressure -o m.rgp", "no column 'vlave'; its columns are valve, pressure"),
    ("fit train.csv -u valve -o m.rgp", "Missing option '-y' / '--output-column'"),
    ("fit train.csv -u valve -y pressure -o no/m.rgp", "the folder no does not exist"),
    ("fit train.csv -u valve -y pressure -o /proc/m.rgp", "no file can be written in /proc"),
    ("fit train.csv more.csv --from rgp.rgp -o /proc/m.rgp", "no file can be written in /proc"),
    ("fit train.csv -u valve -y pressure -o train.csv", "would overwrite train.csv, which is read"),
    (f"{FIT} --dt 0.1 --time t", "dt and a column of times both give the sampling interval"),
    (f"{FIT} --sort-time", "--sort-time (sort_time=True) needs the column of times; give --time COLUMN"),
    *((f"fit five.csv -u valve -y pressure -o m.rgp {option}", "5 measured row(s) are too few to learn from; a fit ")
      for option in ("", "--lags 1", "--model arx")),
    ("fit unsorted.csv -u valve -y pressure -o m.rgp --time t", "not in order of time; --sort-time (sort_time=True) s"),
    (f"{FIT} --split-gaps", "--split-gaps (split_gaps=True) needs the column of times; give --time COLUMN"),
    # Configurations
    (f"{FIT} --lags 100", "has 60 samples, but lags=100"),
    (f"{FIT} --colour red", "No such option: --colour"),
    (f"{FIT} --recipe R9", "R9"),
    (f"{FIT} --config bad.toml", "unknown key 'lag'"),
    (f"{FIT} --lags 2 --jobs 2", "--jobs is for --restarts or for a choice: one fit uses all cores already"),
    (f"{FIT} --members 0", "Invalid value for '--members'"),
    (f"{FIT} --no-calibrate", "--no-calibrate needs --lags or another option that configures the model"),
    *((f"{FIT} {given} {option}", f"{option.split()[0]} is for a choice: leave out --lags and other options")
      for given in ("--lags 2", "--hidden 1", "--restarts 2", "--config rgp.toml", "--linear", "--recipe fixed")
      for option in ("--members 2", "--quick", "--time-limit 60")),
    # Other models
    (f"{FIT} --model rnn", "--model rnn: there is no such model; there are arx, gp-narx, mlp-narx, lstm, gpssm, reduc"),
    (f"{FIT} --model lstm --lags 2", "--lags is not for --model lstm, which takes --input-delay and --seed"),
    (f"{FIT} --model gp-narx --hidden 1", "--hidden is not for --model gp-narx, which takes --lags, --input-lags, "),
    (f"{FIT} --model arx --states 2", "--states is not for --model arx"),
    (f"{FIT} --states 2", "--states is for --model gpssm or reduced-rank-gpssm; the states of an RGP are --latent-dim"),
    *((f"{FIT} --model arx {option}", f"{option.split()[0]} is not for --model arx")
      for option in ("--no-calibrate", "--config rgp.toml", "--restarts 2 --jobs 2", "--members 2", "--resume",
                     "--time-limit 60")),
    # Refits
    *((f"{REFIT} {option}", f"{option.split()[0]} cannot be used with --from, which keeps the model's configuration")
      for option in ("--lags 3", "--input-delay 0", "--config rgp.toml", "--model arx", "--restarts 2", "--seed 0",
                     "--resume", "--no-calibrate", "--time-limit 60")),
    (f"{REFIT} -y level", "-y level: the columns of rgp.rgp are ['pressure']; leave out -y with --from"),
    (f"{REFIT} --dt 0.5", "the record has dt=0.5, but the model was trained with dt=1"),
    ("fit train.csv --from rgp.rgp -o rgp.rgp", "would overwrite rgp.rgp, which is read"),
    ("fit train.csv --from mean.rgp -o m.rgp", "--from mean.rgp: a FittedMean cannot be refitted, only an RGP, an"),
    ("fit train.csv --from arx.rgp -o m.rgp --calibrate", "--calibrate: a FittedARX keeps its bands in a refit"),
    # Simulations and predictions
    *((f"{command} none.rgp test.csv -o p.csv", "cannot read the model file none.rgp")
      for command in ("simulate", "predict")),
    ("simulate rgp.rgp fan.csv -o p.csv", "no column 'valve'; its columns are fan, pressure"),
    ("simulate rgp.rgp test.csv -o p.png", "p.png: the ending .png is not known; name it .csv, .json, .parquet"),
    ("simulate rgp.rgp test.csv -o test.csv", "would overwrite test.csv, which is read"),
    ("simulate rgp.rgp test.csv -o p.csv --start warm", f"{START}cannot read warm"),
    ("simulate rgp.rgp test.csv -o p.csv --start inputs.csv", f"{START}inputs.csv has no column 'pressure'; its colum"),
    ("simulate rgp.rgp test.csv -o few.csv --start few.csv", "would overwrite few.csv, which is read"),
    ("simulate rgp.rgp timed.csv -o p.csv --start slow.csv --time t", f"{START}slow.csv is sampled every 2, but the"),
    ("simulate mean.rgp test.csv -o p.csv --start continue", "--start continue: a FittedMean starts cold only"),
    ("predict rgp.rgp test.csv -o p.csv --time when", "test.csv has no column 'when'; its columns are valve, pressure"),
    ("predict rgp.rgp inputs.csv -o p.csv", "inputs.csv has no column 'pressure'; its columns are valve"),
    ("predict rgp.rgp slow.csv -o p.csv --time t", "slow.csv is sampled every 2, but the model was fitted with dt=1"),
    ("predict mean.rgp test.csv -o p.csv", "mean.rgp contains a FittedMean, which cannot predict; use revarb simulate"),
    # Checks
    ("check mean.rgp test.csv", "mean.rgp contains a FittedMean, which cannot predict; use revarb simulate"),
    ("check arx.rgp test.csv -o check.svg", "the picture is a PNG file; choose a name that ends in .png"),
    ("check arx.rgp table.png -o table.png", "-o table.png would overwrite table.png, which is read"),
    # Exports
    ("export arx.rgp -o x.txt", "the ending of 'x.txt' is that of no export; choose one of these, or pass to=: c (.c)"),
    ("export arx.rgp -o arx.rgp --to onnx", "-o arx.rgp would overwrite arx.rgp, which is read; choose another name"),
    ("export arx.rgp -o - --to onnx", "-o -: an export cannot be written to the standard output; name a file"),
    ("export arx.rgp -o x.c --unit valve", "--unit takes COLUMN=UNIT, received 'valve'"),
    # Comparisons
    (f"{COMPARE} --only GP", "--only GP: there is no such model"),
    (f"{COMPARE} --jobs 0", "Invalid value for '--jobs'"),
    (f"{COMPARE} --out train.csv", "cannot create the folder train.csv"),
    ("compare compare.json test.csv -u valve -y pressure --out .", "would overwrite compare.json, which is read"),
    ("datasets fetch artificial", "'artificial' is generated and has no file"),
    ("compare train.csv twenty.csv -u valve -y pressure --family --only 'GPSSM, prior' --out .",
     "a test record has 20 rows, but 20 are left out"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "message"), CASES, ids=[command for command, _ in CASES])
def test_refusals(capsys, monkeypatch, folder, command, message):
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    code, out, err = run(capsys, *shlex.split(command))
    assert (code, out) == (2, "")
    assert message in err and err.startswith("error: ") and err.count("\n") == 1
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    "command",
    [
        "fit train.csv -u vlave -y pressure -o m.rgp",
        "fit train.csv -u valve -y pressure -o no/m.rgp",
        "fit none.csv -u valve -y pressure -o m.rgp",
        "fit train.csv --from rgp.rgp -u vlave -o m.rgp",
        "fit fan.csv --from rgp.rgp -o m.rgp",
        "compare train.csv fan.csv -u valve -y pressure",
        "simulate rgp.rgp none.csv -o p.csv",
        "predict rgp.rgp test.csv -o no/p.csv",
        "check arx.rgp test.csv --time when",
    ],
)
def test_wrong_files_and_columns_are_refused_before_what_takes_seconds_to_import(monkeypatch, folder, command):
    monkeypatch.chdir(folder)
    done = run_python("-X", "importtime", "-m", "revarb", *shlex.split(command))
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert done.returncode == 2 and "revarb.cli.application" in imported
    assert not imported & {"jax", "scipy", "matplotlib"}
