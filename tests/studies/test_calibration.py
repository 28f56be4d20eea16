"""The study of calibration with a quick model: rows, windows, missing outputs, ARX by the same rule."""

import numpy as np
import pytest

from revarb import RGP, datasets
from studies.calibration import (
    AS_FITTED,
    CALIBRATED,
    INCOMPLETE,
    LINEAR,
    MIXTURE,
    NEXT,
    Calibration,
    hold_out_blocks,
    simulate_calibrated_arx,
)
from studies.study import run_fits
from studies.tables import names_of, select

QUICK = {"hidden": 1, "inducing": 10, "recipe": {"stages": [{"free": ["mu"], "iterations": 2}]}}


class QuickCalibration(Calibration):
    """One record, few windows."""

    datasets, missing, every = ("artificial",), "artificial", 80

    def spec(self, lags):
        return RGP.from_dict({"lags": lags, "input_lags": lags, **QUICK})


@pytest.mark.slow
def test_rows_of_a_quick_study():
    study = QuickCalibration(seeds=2)
    rows, drawn = run_fits(study)
    assert list(study.figures(rows, drawn)) == ["reliability_artificial_calibrated"]
    counts = {name: len(select(rows, model=name)) for name in names_of(rows, "model")}
    assert counts == {CALIBRATED: 6, AS_FITTED: 2, MIXTURE: 1, LINEAR: 1, NEXT: 6, INCOMPLETE: 4}
    starts = [row["start"] for row in select(rows, model=NEXT)]
    assert starts == ["window of 20 samples", "cold", "cold, long before"] * 2
    assert all(np.isfinite(row["rmse"]) for row in rows) and len(study.targets(rows)) == 5


def test_arx_is_calibrated_by_its_own_held_out_errors():
    assert Calibration().spec(10) == RGP(10, 10) and RGP().calibrate  # the other model of the study
    split = datasets.load("artificial")
    held, path = hold_out_blocks(split), simulate_calibrated_arx(split)
    assert sum(map(len, held)) == len(split.train) - split.skip and len(held) == 12
    assert (path.std == path.std[0]).all() and 0.5 < path.std[0, 0] / split.train.y.std() < 3.0
    inside = [np.mean(np.abs(error) * split.train.y.std() < 1.96 * path.std[0, 0]) for error in held]
    assert np.median(inside) >= 0.95
