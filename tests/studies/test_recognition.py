"""The study of the recognition model, with quick models."""

from types import MappingProxyType

import pytest

from studies.paper.recognition import RecognitionStudy
from studies.study import run_fits
from studies.tables import select

SMALL = {"hidden": 1, "inducing": 5, "recipe": {"stages": [{"free": ["mu"], "iterations": 2}]}}
NETWORK = {"start_steps": 50, "rounds": [50], "hidden": [3], "starts": 1}


class QuickRecognition(RecognitionStudy):
    """One record and one start."""

    starts, free_form, networks = {"artificial": ["output-error"]}, SMALL, SMALL
    settings = MappingProxyType({"output-error": {"recognition": NETWORK}})


@pytest.mark.slow
def test_rows_of_a_quick_study():
    study = QuickRecognition(seeds=2)
    rows, _ = run_fits(study)
    networks = select(rows, model="networks, output-error")
    assert [(row["seed"], row["method"]) for row in networks] == [
        (seed, method) for seed in (0, 1) for method in ("mean", "moments", "network")
    ]
    mixture = select(rows, model="networks, output-error: mixture")
    assert [row["seed"] for row in mixture] == [None] * 3
    worst = max(row["rmse"] for row in networks if row["method"] == "mean")
    assert mixture[0]["rmse"] <= worst  # the error of a mean is at most the mean of the errors
    assert rows[0]["model"] == "Mean" and len(study.tables(rows)[0].rows) == 11
