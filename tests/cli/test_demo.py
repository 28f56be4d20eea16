"""`revarb demo`: its files, table and sentence meet what README says of it."""

import json

import pytest

import revarb
from revarb import datasets
from support.command_line import succeed

FILES = ["model.rgp", "scores.json", "simulation.csv", "simulation.png", "test.csv", "train.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_what_the_demo_writes_and_shows(capsys, in_empty_folder, seed):
    out = succeed(capsys, "demo", "--out", "here", "--seed", seed)
    assert sorted(path.name for path in (in_empty_folder / "here").iterdir()) == FILES
    ours, arx, mean = rows = json.loads((in_empty_folder / "here" / "scores.json").read_text())["rows"]
    assert [row["model"] for row in rows] == ["revarb", "ARX", "training mean"]
    assert len({row["skip"] for row in rows}) == 1  # the same rows are scored
    assert f"misses the level by {ours['rmse']:.2f} cm" in " ".join(out.split())
    assert ours["nrmse"] <= 0.15 and ours["rmse"] <= 0.5 * arx["rmse"] < mean["rmse"]
    assert 0.9 <= ours["coverage95"] <= 0.99
    [train] = revarb.read_records("here/train.csv", inputs="voltage", outputs="level")
    assert (train.y == datasets.load("two_tanks", seed=seed).train.y).all()
