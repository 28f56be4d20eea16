"""A model of the first half of Drive, refitted to the whole training part, compared with a fit from scratch."""

import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from revarb import datasets
from revarb.analysis.scores import scores
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.rgp import RGP

SEEDS = range(3)
SPEC = RGP(calibrate=False)
KINDS = ("Drive, fit of its first half", "Drive, fit from scratch", "Drive, refit")


def measure() -> list[dict[str, Any]]:
    """Time the fits of every seed in turn, after a first round in which everything is compiled."""
    _fit_all(SEEDS[0])
    rounds = [_fit_all(seed) for seed in SEEDS]
    rows = [_row(name, results) for name, results in zip(KINDS, zip(*rounds, strict=True), strict=True)]
    rows[2]["of_fit"] = rows[2]["seconds"] / rows[1]["seconds"]
    return rows


def _fit_all(seed: int) -> list[tuple[float, float]]:
    # Seconds and test error of each kind of fit.
    train = datasets.load("drive").train
    half = SPEC.fit(train[: len(train) // 2], seed=seed)
    return [
        _time(lambda: SPEC.fit(train[: len(train) // 2], seed=seed)),
        _time(lambda: SPEC.fit(train, seed=seed)),
        _time(lambda: half.refit(train)),
    ]


def _time(fit: Callable[[], FittedRGP]) -> tuple[float, float]:
    begin = time.perf_counter()
    model = fit()
    seconds, test = time.perf_counter() - begin, datasets.load("drive").test
    return seconds, scores(model.simulate(test.u), test.y).rmse


def _row(name: str, results: tuple[tuple[float, float], ...]) -> dict[str, Any]:
    seconds, errors = zip(*results, strict=True)
    rmse = {"rmse": median(errors), "rmse_low": min(errors), "rmse_high": max(errors)}
    return {"name": name, "n": len(datasets.load("drive").train), "seconds": median(seconds), **rmse}


if __name__ == "__main__":
    print(json.dumps(measure()))
