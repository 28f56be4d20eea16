"""The experiment of calibration on a quick model: rows, windows, missing outputs, ARX by the same rule."""

from dataclasses import replace

import numpy as np
import pytest

from revarb import datasets
from revarb.experiments.calibrated_arx import simulate_calibrated_arx
from revarb.experiments.calibration import AS_FITTED, CALIBRATED, LINEAR, MIXTURE, load_calibration

QUICK = {"hidden": 1, "inducing": 10, "recipe": {"stages": [{"free": ["mu"], "iterations": 2}]}}


@pytest.fixture
def quick():
    table = load_calibration()
    missing = {**table.missing, "dataset": "artificial"}
    return replace(table, datasets=["artificial"], model=QUICK, missing=missing, windows={**table.windows, "every": 80})


def test_the_shipped_experiment_is_the_default_model_on_five_records():
    table = load_calibration()
    assert set(table.datasets) == {"artificial_recorded", "drive", "actuator", "dryer", "gas_furnace"}
    assert table.spec(10) == replace(table.spec(10), calibrate=True) and table.model == {}
    assert table.windows["length"] == table.windows["ahead"] == 20 and table.missing["share"] == 0.2


@pytest.mark.slow
def test_rows_of_a_quick_calibration(quick):
    (part,) = quick.run(seeds=2)
    assert list(part.figures()) == ["reliability_artificial_calibrated"]
    by_model, rows = {}, part.rows
    for row in rows:
        by_model.setdefault(row["model"], []).append(row)
    assert [len(by_model[name]) for name in (CALIBRATED, AS_FITTED, MIXTURE, LINEAR)] == [6, 2, 1, 1]
    starts = [row["start"] for row in by_model["REVARB, next 20 samples"]]
    assert starts == ["window of 20 samples", "cold", "cold, long before"] * 2
    assert len(by_model["REVARB, 20% of y missing"]) == 4
    assert all(np.isfinite(row["rmse"]) for row in rows) and by_model[CALIBRATED][0]["stretches"] == 12


@pytest.mark.slow
def test_arx_is_calibrated_by_its_own_held_out_errors():
    split = datasets.load("artificial")
    path = simulate_calibrated_arx(split)
    assert (path.std == path.std[0]).all() and 0.5 < path.std[0, 0] / split.train.y.std() < 3.0
