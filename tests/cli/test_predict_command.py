"""`revarb predict`."""

import numpy as np
import pytest

import revarb
from revarb.data.tables.table import Table
from support import small
from support.command_line import FIT, run, with_cells


@pytest.mark.parametrize("several", [(), ("--restarts", "2")])
def test_prediction_along_a_measured_record(capsys, folder, drawn, several):
    assert run(capsys, *FIT, "--hidden", "1", *several)[0] == 0
    with_cells(folder, "gaps.csv", "NaN", range(20, 30))
    table = Table("gaps.csv")
    record = revarb.Series(table.columns(["valve"]), table.columns(["pressure"], missing=True))
    for given, name, horizon in (((), "1 step ahead", 1), (("--horizon", "3"), "3 steps ahead", 3)):
        code, out, err = run(capsys, "predict", "m.rgp", "gaps.csv", "-o", "p.csv", *given)
        assert code == 0 and err == "" and f"prediction, {name}, first 4 rows left out" in out and "RMSE" in out
        assert drawn[-1][0] == f"gaps.csv: prediction, {name}" and "model" in drawn[-1][1]
        assert Table("p.csv").names[:4] == ("row", "counts", "pressure_mean", "pressure_std")
        np.testing.assert_array_equal(Table("p.csv").columns(["counts"])[:6, 0], [0, 0, 0, 0, 1, 1])
        expected = revarb.load("m.rgp").predict(record, horizon).mean
        np.testing.assert_allclose(Table("p.csv").columns(["pressure_mean"]), expected, rtol=1e-6, atol=1e-9)


def test_a_linear_model_predicts_too(capsys, folder, drawn):
    record = small.record()
    model = revarb.ARX(2, 2).fit(revarb.Series(record.u, record.y, 1.0, ["valve"], ["pressure"]))
    model.save("arx.rgp")
    with_cells(folder, "gaps.csv", "NaN", range(20, 30))
    table = Table("gaps.csv")
    gaps = revarb.Series(table.columns(["valve"]), table.columns(["pressure"], missing=True))
    code, out, err = run(capsys, "predict", "arx.rgp", "gaps.csv", "-o", "p.csv", "--horizon", "3")
    assert code == 0 and err == "" and "prediction, 3 steps ahead" in out and "RMSE" in out
    assert drawn[-1][0] == "gaps.csv: prediction, 3 steps ahead" and "model" in drawn[-1][1]
    np.testing.assert_allclose(
        Table("p.csv").columns(["pressure_mean"]), model.predict(gaps, 3).mean, rtol=1e-6, atol=1e-9
    )


def test_a_model_that_only_simulates_says_so(capsys, folder):
    record = small.record()
    revarb.Mean().fit(revarb.Series(record.u, record.y, 1.0, ["valve"], ["pressure"])).save("mean.rgp")
    code, _, err = run(capsys, "predict", "mean.rgp", "test.csv", "-o", "p.csv")
    assert code == 2 and "mean.rgp contains a FittedMean, which cannot predict; use revarb simulate" in err
