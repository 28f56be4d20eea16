"""`revarb fit --from`: a trained model is trained further on more records."""

import pytest

import revarb
from revarb.data.table_file import write_table
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
    assert revarb.load("m2.rgp").status.label == "interrupted"


@pytest.mark.slow
def test_the_bands_are_calibrated_again_on_request(capsys, folder):
    record = small.record(samples=150)
    write_table("train.csv", {"valve": record.u[:, 0], "pressure": record.y[:, 0]})
    assert run(capsys, *FIT, "--hidden", "1")[0] == 0
    code, out, _ = run(capsys, "fit", "train.csv", "--from", "m.rgp", "-o", "m2.rgp")
    assert code == 0 and "\ncalibrated, as before\n" in out
    assert revarb.load("m2.rgp").calibration == revarb.load("m.rgp").calibration
    code, out, _ = run(capsys, "fit", "train.csv", "more.csv", "--from", "m.rgp", "-o", "m2.rgp", "--calibrate")
    assert code == 0 and "held-out blocks: median error" in out
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
