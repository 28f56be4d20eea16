"""From a record to a chosen and calibrated model, and the same work done the slow way, in fresh interpreters.

`python -m bench.choosing [RECORD]` prints rows; with `--one RECORD quick|slow SEED` it is one of those interpreters.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.stirred_tank import make_record
from revarb import datasets
from revarb.data.series import Series
from revarb.fitting.held_out import HeldOutBlock
from revarb.fitting.problem import Report
from revarb.fitting.weight_path import WeightPath, fit_weight_path, set_weight
from revarb.models.base import Fitted
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.rgp import RGP
from revarb.selection import choose, schedule, search

COMPARED = ("drive",)  # the slow way takes many times longer
SEEDS = (0, 1, 2)  # of the records on which both ways are compared; the others have the first one
RECORDS = ("drive", "actuator", "stirred tank")
TANK_ROWS = 1000


def measure(names: Sequence[str] = RECORDS) -> list[dict[str, Any]]:
    """Time the choice on every record, programs compiled before; on some of them the slow way too."""
    with tempfile.TemporaryDirectory() as cache:
        return [_measure(name, cache) for name in names]


def _measure(name: str, cache: str) -> dict[str, Any]:
    seeds = SEEDS if name in COMPARED else SEEDS[:1]
    _choose_elsewhere(name, "quick", cache, SEEDS[0])  # compiles
    quick = [_choose_elsewhere(name, "quick", cache, seed) for seed in seeds]
    row = {"name": f"chosen and calibrated, {name}", "n": quick[0]["n"], "seeds": len(seeds), **_summarise(quick)}
    if name in COMPARED:
        slow = _summarise([_choose_elsewhere(name, "slow", cache, seed) for seed in seeds])
        row |= {f"slow_{key}": value for key, value in slow.items()}
        row |= {"times_faster": slow["seconds"] / row["seconds"]}
    return row


def _summarise(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    # Medians over the seeds; what was taken, seed by seed.
    medians = {key: float(np.median([run[key] for run in runs])) for key in ("seconds", "rmse", "held_out_error")}
    return {**medians, "taken": "; ".join(run["taken"] for run in runs)}


def _choose_elsewhere(name: str, way: str, cache: str, seed: int) -> dict[str, Any]:
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "bench.choosing", "--one", name, way, str(seed)],
        stdout=subprocess.PIPE, text=True, env=environment, check=True,
    )  # fmt: skip
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, **json.loads(done.stdout.splitlines()[-1])}


def choose_one(name: str, way: str, seed: str) -> dict[str, Any]:
    """Choose a model, and score it on the test part."""
    train, test = _load(name)
    model = choose.fit(train, int(seed)) if way == "quick" else fit_slowly(train, int(seed))
    assert model.choice is not None
    path = model.simulate(test.u, "mean") if isinstance(model, FittedRGP) else model.simulate(test.u)
    error = (path.mean - test.y)[model.skip :] / np.std(train.y, axis=0)
    held_out = {each.name: each.error for each in model.choice.candidates}[model.choice.taken]
    return {
        "n": len(train), "taken": model.choice.taken, "rmse": float(np.sqrt(np.mean(error**2))),
        "held_out_error": held_out,
    }  # fmt: skip


def _load(name: str) -> tuple[Series, Series]:
    if name == "stirred tank":
        return make_record(TANK_ROWS, seed=0), make_record(TANK_ROWS, seed=1)
    split = datasets.load(name)
    return split.train, split.test


def fit_slowly(train: Series, seed: int) -> Fitted:
    """`revarb.fit` without its short cuts: the same candidates, folds and rule.

    Every weight of every fold is a fit of its own from a cold start, one after another, and nothing is dropped.
    """
    schedule.fit_whole_path = fit_each_weight
    search.DROP = search.DROP_VARIANT = np.inf
    return choose.fit(train, seed, jobs=1)


def fit_each_weight(
    spec: RGP, records: Sequence[Series], blocks: Sequence[HeldOutBlock], fold: int, seed: int, report: Report
) -> WeightPath:
    """One model per weight, as `weight_path.fit_whole_path` gives them, each from a cold start."""
    begin, weights = time.perf_counter(), spec.recipe.free_run_weights
    models = [next(fit_weight_path(spec, records, blocks, fold, seed, report))]
    for weight in weights:
        *_, model = fit_weight_path(set_weight(spec, weight), records, blocks, fold, seed, report)
        if model.spec.recipe.free_run_weight != weight:  # its runs diverged
            break
        models.append(model)
    return WeightPath(tuple(models), time.perf_counter() - begin)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(choose_one(*sys.argv[2:5])))
    else:
        print(json.dumps(measure(sys.argv[1:] or RECORDS)))
