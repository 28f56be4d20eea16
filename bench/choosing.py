"""`revarb.fit` on measured records of 250 to 2000 rows, in fresh interpreters, beside one fit of one configuration.

`python -m bench.choosing [RECORD]` prints rows; with `--one RECORD WAY SEED` it is one of those interpreters.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import revarb
from revarb import datasets

SEEDS = (0, 1, 2)
RECORDS = ("drive", "dryer", "winding", "winding, both parts")  # 250, 500, 1000 and 2000 rows
WAYS = ("chosen", "chosen, quick", "one fit")
ESTIMATE = re.compile(r"^about (\d+) s for", re.MULTILINE)


def measure(names: Sequence[str] = RECORDS) -> list[dict[str, Any]]:
    """Time every way on every record, nothing compiled for the first run and everything for the others."""
    return [row for name in names for row in _measure(name)]


def _measure(name: str) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as cache:
        found = {way: [_run_elsewhere(name, way, cache, seed) for seed in (SEEDS[0], *SEEDS)] for way in WAYS}
    plain = _take_median(found["one fit"][1:], "seconds")
    rows = []
    for way, (first, *runs) in found.items():
        seconds = _take_median(runs, "seconds")
        row = {"name": f"{way}, {name}", "n": first["n"], "seeds": len(runs), "seconds": seconds}
        row |= {"first_seconds": first["seconds"], "rmse": _take_median(runs, "rmse"), "times_fit": seconds / plain}
        if "estimate" in first:
            row |= {"estimate": _take_median(runs, "estimate"), "first_estimate": first["estimate"]}
        rows.append(row)
    return rows


def _take_median(runs: Sequence[dict[str, Any]], key: str) -> float:
    return float(np.median([run[key] for run in runs]))


def _run_elsewhere(name: str, way: str, cache: str, seed: int) -> dict[str, Any]:
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "bench.choosing", "--one", name, way, str(seed)],
        capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip
    row = {"seconds": time.perf_counter() - begin, **json.loads(done.stdout.splitlines()[-1])}
    estimate = ESTIMATE.search(done.stderr)
    return row | ({"estimate": float(estimate[1])} if estimate else {})


def fit_one(name: str, way: str, seed: str) -> dict[str, Any]:
    """Fit a model, and score it on the test part."""
    split = datasets.load(name.split(",")[0])
    train, test = split.train, split.test
    if name.endswith("both parts"):
        train = revarb.Series(np.concatenate([train.u, test.u[:1000]]), np.concatenate([train.y, test.y[:1000]]))
    if way == "one fit":
        model = revarb.RGP(calibrate=False).fit(train, int(seed))
    else:
        model = revarb.fit(train, int(seed), progress=True, effort="quick" if way.endswith("quick") else "normal")
    error = (model.simulate(test.u).mean - test.y)[model.skip :] / np.std(train.y, axis=0)
    return {"n": len(train), "rmse": float(np.sqrt(np.mean(error**2)))}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(fit_one(*sys.argv[2:5])))
    else:
        print(json.dumps(measure(sys.argv[1:] or RECORDS)))
