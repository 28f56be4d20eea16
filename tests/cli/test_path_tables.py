"""Tables that `revarb simulate` and `revarb predict` read and write: sampling, time columns, kinds of files."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import revarb
from revarb.data.table_file import write_table
from revarb.models.model_file import read_container, write_container
from support import small
from support.command_line import COLUMNS, FIT, refuse, run, succeed, write_record
from support.processes import environment

TIMES = 0.5 * np.arange(60)


@pytest.fixture
def model(folder):
    """A linear model that was fitted to a table with a column of times."""
    write_record("timed.csv", small.record(), TIMES)
    [record] = revarb.read_records("timed.csv", inputs="valve", outputs="pressure", time="t")
    fitted = revarb.ARX(2, 2).fit(record)
    fitted.save("arx.rgp")
    return fitted


SIMULATE, PREDICT = ("simulate", "arx.rgp"), ("predict", "arx.rgp")


def test_the_model_remembers_the_column_of_times(model):
    assert model.preprocessor.time_name == revarb.load("arx.rgp").preprocessor.time_name == "t"
    header, arrays = read_container("arx.rgp")
    del header["time_name"]
    write_container("old.rgp", header, arrays)
    assert revarb.load("old.rgp").preprocessor.time_name is None
    write_container("odd.rgp", {**header, "time_name": 3}, arrays)
    with pytest.raises(revarb.InputError, match="a column of times must be named by a text, received 3"):
        revarb.load("odd.rgp")


@pytest.mark.parametrize("command", [SIMULATE, PREDICT])
def test_sampling_is_checked_without_being_asked(capsys, model, command):
    write_record("slow.csv", small.record(2), 2 * TIMES)
    said = refuse(capsys, *command, "slow.csv", "-o", "p.csv")
    assert "slow.csv is sampled every 1, but the model was fitted with dt=0.5" in said
    write_record("shifted.csv", small.record(2), 7 + TIMES)
    succeed(capsys, *command, "shifted.csv", "-o", "p.csv")
    written = pd.read_csv("p.csv")
    assert list(written.columns[:3]) == ["t", "scored", "pressure_mean"]
    np.testing.assert_array_equal(written["t"], 7 + TIMES)
    succeed(capsys, *command, "test.csv", "-o", "p.csv")  # without the column nothing can be checked
    assert list(pd.read_csv("p.csv").columns[:2]) == ["row", "scored"]


def test_jitter_is_noted(capsys, model):
    write_record("jitter.csv", small.record(2), TIMES + 0.02 * (TIMES == 3.5))
    code, _, err = run(capsys, *SIMULATE, "jitter.csv", "-o", "p.csv")
    assert code == 0 and err.startswith("warning: jitter.csv, column 't': steps differ by up to 4.0% from their median")
    assert err.count("\n") == 1
    write_record("jitter.csv", small.record(2), TIMES + 0.04 * (TIMES == 3.5))
    said = refuse(capsys, *SIMULATE, "jitter.csv", "-o", "p.csv")
    assert "jitter.csv, line 9, column 't': time goes from 3.0 to 3.54" in said


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_several_records_are_sampled_alike(capsys, folder, command):
    write_record("a.csv", small.record(), TIMES)
    write_record("b.csv", small.record(1), 2 * TIMES)
    said = refuse(capsys, command, "a.csv", "b.csv", *COLUMNS, "--time", "t", "-o", "out.rgp")
    assert "b.csv is sampled every 1, but a.csv every 0.5; resample one" in said


def test_records_in_python_are_sampled_like_the_model(model):
    record = small.record(2)
    for dt in (None, 1.0, 0.51):
        with pytest.raises(revarb.InputError, match=r"the record has dt=.*, but the model was trained with dt=0.5"):
            model.predict(revarb.Series(record.u, record.y, dt))
        with pytest.raises(revarb.InputError, match=r"the record has dt=.*, but the model was trained with dt=0.5"):
            model.simulate(record.u, start=revarb.Window(record.u, record.y, dt))
    assert len(model.predict(revarb.Series(record.u, record.y, 0.5001))) == 60


def test_a_logger_file_from_fit_to_prediction(capsys, folder):
    """Decimal comma, semicolons, units, a comment, dates with the day first, UTF-16."""
    for name, seed in (("train.csv", 0), ("test.csv", 2)):
        write_record(name, small.record(seed))
        table = pd.read_csv(name, index_col=False)
        table.insert(0, "when", pd.date_range("2026-11-15 08:00", periods=60, freq="10s"))
        text = table.to_csv(sep=";", decimal=",", index=False, date_format="%d.%m.%Y %H:%M:%S")
        header, rest = text.split("\n", 1)
        (folder / name).write_bytes(f"# Logger 7\r\n{header}\n;%;bar\n{rest}".encode("utf-16"))
    assert run(capsys, *FIT, "--time", "when")[0] == 0
    assert revarb.load("m.rgp").dt == 10.0
    assert "RMSE" in run(capsys, "predict", "m.rgp", "test.csv", "-o", "p.csv")[1]
    written = pd.read_csv("p.csv")
    assert len(written) == 60 and written["when"][1] == "15.11.2026 08:00:10"


def test_options_for_other_files(capsys, model, folder):
    text = pd.read_csv("test.csv").to_csv(sep="|", decimal=",", index=False)
    (folder / "odd.csv").write_text(f"Logger|7\nno comment\n{text}")
    said = refuse(capsys, *SIMULATE, "odd.csv", "-o", "p.csv")
    assert "--separator" in said and "--skip-rows" in said
    form = ("--separator", "|", "--skip-rows", "2", "--decimal", ",")
    for arguments in (
        (*SIMULATE, "odd.csv", "-o", "p.csv", *form),
        (*SIMULATE, "odd.csv", "-o", "p.csv", *form, "--start", "odd.csv"),
        (*PREDICT, "odd.csv", "-o", "p.csv", *form),
        ("fit", "odd.csv", *COLUMNS, "--config", "rgp.toml", "-o", "m.rgp", *form),
        ("compare", "odd.csv", "odd.csv", *COLUMNS, "--only", "ARX", "--seeds", "1", *form),
    ):
        succeed(capsys, *arguments)


def test_kinds_of_tables(capsys, model, folder):
    readers = {"p.csv": pd.read_csv, "p.json": pd.read_json, "p.parquet": pd.read_parquet}
    frames = []
    for name, read in readers.items():
        assert f"wrote {name}" in succeed(capsys, *SIMULATE, "timed.csv", "-o", name) and (folder / "p.png").exists()
        frames.append(read(name))
    for frame in frames[1:]:
        pd.testing.assert_frame_equal(frame, frames[0], check_dtype=False)


@pytest.mark.parametrize("command", [SIMULATE, PREDICT])
def test_a_table_on_the_standard_output_is_alone_there(capsys, model, folder, command):
    before = set(folder.iterdir())
    code, out, err = run(capsys, *command, "timed.csv", "-o", "-")
    assert code == 0 and "RMSE" in err and "wrote" not in err and set(folder.iterdir()) == before
    succeed(capsys, *command, "timed.csv", "-o", "p.csv")
    assert out == (folder / "p.csv").read_text() and out.count("\n") == 61


def test_a_pipe_that_closes_early(model):
    """As in `revarb simulate … -o - | head -n 1`."""
    write_table("long.csv", {"valve": np.zeros(20_000)})
    command = [sys.executable, "-m", "revarb", *SIMULATE, "long.csv", "-o", "/dev/stdout"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith(b"row,scored,pressure_mean")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
