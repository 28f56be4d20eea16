"""`revarb fit --from`: a trained model is trained further on more records."""

import numpy as np
import pytest

import revarb
from support import small
from support.command_line import COLUMNS, FIT, refuse, run, succeed, write_record
from support.journals import count_evaluations

REFIT = ("fit", "train.csv", "more.csv", "--from", "m.rgp", "-o", "m2.rgp")


@pytest.fixture
def fitted(capsys, folder):
    """A model of train.csv."""
    succeed(capsys, *FIT, "--hidden", "1", "--no-calibrate")


def test_a_refit_takes_its_columns_from_the_model(capsys, fitted):
    out = succeed(capsys, *REFIT)
    assert "refitted to 2 record(s), 120 samples in" in out and "finished after 3 iterations, bound" in out
    assert "\nnot calibrated, as before\n" in out
    assert "wrote m2.rgp\nwrote m2.fit.png\n" in out
    old, new = revarb.load("m.rgp"), revarb.load("m2.rgp")
    assert (len(old.lengths), len(new.lengths), new.spec) == (1, 2, old.spec)
    assert (new.input_names, new.output_names) == (("valve",), ("pressure",))
    succeed(capsys, *REFIT, *COLUMNS)  # said again


def test_ctrl_c_keeps_the_model(capsys, fitted):
    with count_evaluations(press_at=2):
        code, _, err = run(capsys, *REFIT)
    assert code == 130 and err == "interrupted: the best model so far was kept\n"
    assert revarb.load("m2.rgp").status.label == "interrupted"


@pytest.mark.slow
def test_the_bands_are_calibrated_again_on_request(capsys, folder):
    write_record("train.csv", small.record(samples=150))
    succeed(capsys, *FIT, "--hidden", "1")
    assert "\ncalibrated, as before\n" in run(capsys, *REFIT)[1]
    assert revarb.load("m2.rgp").calibration == revarb.load("m.rgp").calibration
    assert "held-out blocks: held-out error" in run(capsys, *REFIT, "--calibrate")[1]
    assert revarb.load("m2.rgp").calibration != revarb.load("m.rgp").calibration


def test_a_column_of_times_is_remembered(capsys, folder):
    for name, dt in (("train.csv", 0.1), ("slow.csv", 0.2)):
        write_record(name, small.record(), dt * np.arange(60))
    records = revarb.read_records("train.csv", inputs="valve", outputs="pressure", time="t")
    small.spec(hidden=1).fit(records).save("m.rgp")
    err = refuse(capsys, "fit", "slow.csv", "--from", "m.rgp", "-o", "m2.rgp")
    assert "the record has dt=0.2, but the model was trained with dt=0.1" in err
    succeed(capsys, "fit", "test.csv", "--from", "m.rgp", "-o", "m2.rgp")
    assert revarb.load("m2.rgp").dt == pytest.approx(0.1)
