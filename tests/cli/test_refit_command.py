"""`revarb fit --from`: a trained model goes on with more records."""

import pytest

import revarb
from revarb.data.tables.writing import write_table
from support import small
from support.command_line import FIT, run
from support.journals import count_evaluations

REFIT = ("fit", "train.csv", "more.csv", "--from", "m.rgp", "-o", "m2.rgp")


@pytest.fixture
def fitted(capsys, folder):
    """The folder with a model of train.csv."""
    assert run(capsys, *FIT, "--hidden", "1", "--no-calibrate")[0] == 0
    return folder


def test_a_refit_takes_its_columns_from_the_model(capsys, fitted):
    code, out, err = run(capsys, *REFIT)
    assert code == 0, err
    assert "refitted to 2 record(s), 120 samples in" in out and "finished after 3 iterations, bound" in out
    assert "\nnot calibrated, as before\n" in out
    assert "wrote m2.rgp\nwrote m2.fit.png\n" in out
    old, new = revarb.load("m.rgp"), revarb.load("m2.rgp")
    assert (len(old.lengths), len(new.lengths), new.spec) == (1, 2, old.spec)
    assert (new.input_names, new.output_names) == (("valve",), ("pressure",))
    code, _, err = run(capsys, *REFIT, "-u", "valve", "-y", "pressure")  # said again
    assert code == 0, err


def test_ctrl_c_keeps_the_model(capsys, fitted):
    with count_evaluations(press_at=2):
        code, _, err = run(capsys, *REFIT)
    assert code == 130 and err == "interrupted: the best model so far was kept\n"
    assert revarb.load("m2.rgp").status.words == "interrupted"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--lags", "3"), "--lags does not go with --from: the model says what it is; leave one of them out"),
        (("--input-delay", "0"), "--input-delay does not go with --from"),
        (("--config", "rgp.toml"), "--config does not go with --from"),
        (("--model", "arx"), "--model does not go with --from"),
        (("--restarts", "2"), "--restarts does not go with --from"),
        (("--seed", "0"), "--seed does not go with --from"),
        (("--resume",), "--resume does not go with --from"),
        (("--no-calibrate",), "--no-calibrate does not go with --from"),
        (("-y", "level"), "-y level: the columns of m.rgp are ['pressure']; leave out -y with --from"),
        (("-u", "valve", "-u", "pump"), "-u valve pump: the columns of m.rgp are ['valve']"),
        (("--dt", "0.5"), "the record has dt=0.5, but the model was trained with dt=1"),
    ],
)
def test_options_that_contradict_the_model_are_refused(capsys, fitted_once, options, message):
    code, out, err = run(capsys, *REFIT, *options)
    assert (code, out) == (2, "") and err.startswith(f"error: {message}") and err.count("\n") == 1
    assert not (fitted_once / "m2.rgp").exists()


def test_files_that_do_not_fit_are_refused(capsys, fitted_once):
    record = small.record(1)
    write_table("other.csv", {"pump": record.u[:, 0], "pressure": record.y[:, 0]})
    for arguments, message in (
        (("fit", "other.csv", *REFIT[3:]), "no column 'valve'"),
        (("fit", "train.csv", "--from", "none.rgp", "-o", "m2.rgp"), "cannot read the model file none.rgp"),
        (("fit", "train.csv", "--from", "m.rgp", "-o", "m.rgp"), "would overwrite m.rgp, which is read"),
        (("fit", "train.csv", "--from", "arx.rgp", "-o", "m2.rgp"), "--from arx.rgp: a FittedARX cannot be refitted"),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out) == (2, "") and message in err and err.count("\n") == 1, err


@pytest.fixture
def fitted_once(in_empty_folder, model_files):
    """A folder with models that are fitted once for all tests."""
    for name in ("train.csv", "more.csv"):
        record = small.record()
        write_table(name, {"valve": record.u[:, 0], "pressure": record.y[:, 0]})
    for name, model in model_files.items():
        model.save(name)
    (in_empty_folder / "rgp.toml").write_text("lags = 2")
    return in_empty_folder


@pytest.fixture(scope="module")
def model_files():
    """An RGP and an ARX model of train.csv."""
    plain = small.record()
    record = revarb.Series(plain.u, plain.y, input_names=["valve"], output_names=["pressure"])
    return {"m.rgp": small.spec(hidden=1).fit(record), "arx.rgp": revarb.ARX(2, 2).fit(record)}


@pytest.mark.slow
def test_the_bands_are_calibrated_again_on_request(capsys, folder):
    record = small.record(samples=150)
    write_table("train.csv", {"valve": record.u[:, 0], "pressure": record.y[:, 0]})
    assert run(capsys, *FIT, "--hidden", "1")[0] == 0
    code, out, _ = run(capsys, "fit", "train.csv", "--from", "m.rgp", "-o", "m2.rgp")
    assert code == 0 and "\ncalibrated, as before\n" in out
    assert revarb.load("m2.rgp").calibration == revarb.load("m.rgp").calibration
    code, out, _ = run(capsys, "fit", "train.csv", "more.csv", "--from", "m.rgp", "-o", "m2.rgp", "--calibrate")
    assert code == 0 and "held-out stretches: median error" in out
    assert revarb.load("m2.rgp").calibration != revarb.load("m.rgp").calibration


def test_a_column_of_times_is_remembered(capsys, in_empty_folder):
    record = small.record()
    columns = {"valve": record.u[:, 0], "pressure": record.y[:, 0]}
    write_table("train.csv", {"t": [0.1 * k for k in range(60)], **columns})
    write_table("slow.csv", {"t": [0.2 * k for k in range(60)], **columns})
    write_table("plain.csv", columns)
    small.spec(hidden=1).fit(revarb.read_records("train.csv", inputs="valve", outputs="pressure", time="t")).save(
        "m.rgp"
    )
    code, _, err = run(capsys, "fit", "slow.csv", "--from", "m.rgp", "-o", "m2.rgp")
    assert code == 2 and "the record has dt=0.2, but the model was trained with dt=0.1" in err
    code, _, err = run(capsys, "fit", "plain.csv", "--from", "m.rgp", "-o", "m2.rgp")
    assert code == 0, err
    assert revarb.load("m2.rgp").dt == pytest.approx(0.1)


def test_columns_must_be_named_without_a_model(capsys, folder):
    code, _, err = run(capsys, "fit", "train.csv", "-u", "valve", "-o", "m.rgp")
    assert code == 2 and err.startswith("error: Missing option '-y' / '--output-column'")
    code, _, err = run(capsys, "fit", "train.csv", "-u", "valve", "-y", "pressure", "-o", "m.rgp", "--calibrate")
    assert code == 2 and err.startswith("error: --calibrate needs --lags or another option")
