"""`revarb demo`: its files, table and sentence; the real one meets what README says of it."""

import json

import pytest

import revarb
from revarb import datasets
from support.command_line import run
from support.small_choice import use_quick_candidates

FILES = ["model.rgp", "scores.json", "simulation.csv", "simulation.png", "test.csv", "train.csv"]


@pytest.mark.slow
def test_the_demo_writes_its_record_model_table_and_picture(capsys, in_empty_folder, monkeypatch):
    use_quick_candidates(monkeypatch, linear=True)
    code, out, err = run(capsys, "demo", "--out", "here", "--seed", "3")
    assert (code, err) == (0, "")
    assert sorted(path.name for path in (in_empty_folder / "here").iterdir()) == FILES
    rows = json.loads((in_empty_folder / "here" / "scores.json").read_text())["rows"]
    assert [row["model"] for row in rows] == ["revarb", "ARX", "training mean"]
    assert len({row["skip"] for row in rows}) == 1  # the same rows are scored
    assert f"misses the level by {rows[0]['rmse']:.2f} cm" in " ".join(out.split())
    [train] = revarb.read_records("here/train.csv", inputs="voltage", outputs="level")
    assert (train.y == datasets.load("two_tanks", seed=3).train.y).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_what_the_demo_shows(capsys, in_empty_folder, seed):
    assert run(capsys, "demo", "--out", "here", "--seed", str(seed))[0] == 0
    ours, arx, mean = json.loads((in_empty_folder / "here" / "scores.json").read_text())["rows"]
    assert ours["nrmse"] <= 0.15 and ours["rmse"] <= 0.5 * arx["rmse"] < mean["rmse"]
    assert 0.9 <= ours["coverage95"] <= 0.99
