"""The table of the recognition model, run with quick models."""

import pytest

from revarb.config.recognition import Recognition
from revarb.config.rgp import RGP
from revarb.experiments.recognition import RecognitionTable, load_recognition


@pytest.mark.slow
def test_rows_of_a_quick_recognition_table():
    small = {"hidden": 1, "inducing": 5, "recipe": {"stages": [{"free": ["mu"], "iterations": 2}]}}
    table = RecognitionTable(
        "quick",
        {"artificial": ["output-error"]},
        small,
        small,
        {"output-error": {"recognition": {"start_steps": 50, "rounds": [50], "hidden": [3], "starts": 1}}},
    )
    heard = []
    (part,) = table.run(seeds=2, report=heard.append)
    rows = part.rows
    assert heard == ["artificial: free form", "artificial: networks, output-error"]
    networks = [row for row in rows if row["model"] == "networks, output-error"]
    assert [(row["seed"], row["method"]) for row in networks] == [
        (seed, method) for seed in (0, 1) for method in ("mean", "moments", "network")
    ]
    mixture = [row for row in rows if row["model"] == "networks, output-error: mixture"]
    assert [row["seed"] for row in mixture] == [None] * 3
    worst = max(row["rmse"] for row in networks if row["method"] == "mean")
    assert mixture[0]["rmse"] <= worst  # the error of a mean is at most the mean of the errors
    assert rows[0]["model"] == "Mean"


def test_the_shipped_recognition_table_begins_with_the_default_start():
    models = load_recognition().models("artificial_recorded", 10)
    assert all(starts[0] == "output-error" for starts in load_recognition().datasets.values())
    assert list(models) == ["free form", "networks, output-error", "networks, random", "networks, free-form"]
    assert models["networks, output-error"].recognition == Recognition()
    assert models["free form"] == RGP(lags=10, input_lags=10, calibrate=False)
