"""Fits of a long record, by blocks and to all rows: `python -m bench.long_fits SAMPLES`, one process per fit.

`python -m bench.long_fits SAMPLES MAX_ROWS` makes one of them here; 0 for all rows.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from typing import Any

from bench.stirred_tank import make_record
from revarb.analysis.scores import scores
from revarb.models.recipe import RECIPES
from revarb.models.rgp import RGP

RECIPE = RECIPES["linear"]
SPEC = RGP(hidden=1, latent_dim=2, recipe=RECIPE, calibrate=False, linear=True)
TEST_SAMPLES = 2000


def measure(samples: int) -> list[dict[str, Any]]:
    """Make both fits one after the other, each with an empty cache of compiled programs."""
    return [_measure_apart(samples, max_rows) for max_rows in (RECIPE.max_rows, None)]


def _measure_apart(samples: int, max_rows: int | None) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.long_fits", str(samples), str(max_rows or 0)]
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    with tempfile.TemporaryDirectory() as cache:
        environment["XDG_CACHE_HOME"] = cache
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    [row] = json.loads(done.stdout.splitlines()[-1])
    return row


def fit_here(samples: int, max_rows: int | None) -> dict[str, Any]:
    """Fit a record, and simulate another one: seconds, peak memory, and the error of the free run."""
    train, test = make_record(samples, seed=0), make_record(TEST_SAMPLES, seed=1)
    begin = time.perf_counter()
    model = replace(SPEC, recipe=replace(RECIPE, max_rows=max_rows)).fit(train)
    seconds = time.perf_counter() - begin
    found = scores(model.simulate(test.u), test.y, skip=model.skip)
    return {
        "name": "fit to all rows" if max_rows is None else f"fit by blocks, {max_rows} rows",
        "n": samples,
        "seconds": seconds,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "iterations": len(model.history),
        "status": model.status.value,
        "nrmse": found.nrmse,
    }


if __name__ == "__main__":
    samples, *limit = (int(argument) for argument in sys.argv[1:])
    print(json.dumps([fit_here(samples, limit[0] or None)] if limit else measure(samples)))
