"""Time of one step of a live run with its correction: 99th percentile over three thousand samples."""

import json
import time
from dataclasses import replace
from typing import Any

import numpy as np

from bench.problems import SEED, SPEC
from revarb.data.series import Series
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.live import Live
from revarb.models.recipe import R0_FREE, Recipe, Stage

SAMPLES, STEPS, PERCENTILE = 400, 3_000, 99.0


def measure() -> dict[str, Any]:
    """Time the steps of a hardly trained model: the time does not depend on the training."""
    rng = np.random.default_rng(SEED)
    live, u, noise = Live(_fit(rng), observe=True), rng.standard_normal(STEPS), 0.1 * rng.standard_normal(STEPS)
    seconds = [_time_step(live, *now) for now in zip(u, noise, strict=True)]
    return {
        "name": "observer, 99 % of steps within",
        "n": len(seconds),
        "seconds": float(np.percentile(seconds, PERCENTILE)),
        "median_seconds": float(np.median(seconds)),
    }


def _fit(rng: np.random.Generator) -> FittedRGP:
    u = rng.standard_normal(SAMPLES)
    y = np.convolve(np.tanh(u), [0.0, 0.5, 0.3])[:SAMPLES] + 0.02 * rng.standard_normal(SAMPLES)
    recipe = Recipe(stages=(Stage(R0_FREE, 5),), kmeans_starts=1)
    return replace(SPEC, recipe=recipe, calibrate=False).fit(Series(u, y))


def _time_step(live: Live, u: float, noise: float) -> float:
    begin = time.perf_counter()
    live.correct(live.step(u).mean + noise)
    return time.perf_counter() - begin


if __name__ == "__main__":
    print(json.dumps([measure()]))
