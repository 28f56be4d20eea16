"""`revarb predict`."""

import numpy as np
import pytest

import revarb
from revarb.data.tables.table import Table
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
        assert drawn[-1][0] == f"gaps.csv: prediction, {name}" and "model (moments)" in drawn[-1][1]
        assert Table("p.csv").names == ("pressure_mean", "pressure_std", "pressure_lower", "pressure_upper")
        expected = revarb.load("m.rgp").predict(record, horizon).mean
        np.testing.assert_allclose(Table("p.csv").columns(["pressure_mean"]), expected, rtol=1e-6, atol=1e-9)
