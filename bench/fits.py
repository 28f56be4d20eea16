"""Whole fits of Drive in fresh interpreters, with an empty and a full compilation cache; eight restarts."""

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

FIT = "import revarb; revarb.RGP(calibrate=False).fit(revarb.datasets.load('drive').train)"
CALIBRATED = "import revarb; revarb.RGP().fit(revarb.datasets.load('drive').train)"
RESTARTS = "import revarb; revarb.RGP(calibrate=False).fit(revarb.datasets.load('drive').train, restarts=8, jobs=2)"


def measure() -> list[dict[str, Any]]:
    """Time the programs one after the other; all but the first find compiled functions in the cache."""
    with tempfile.TemporaryDirectory() as cache:
        named = {
            "fit of Drive, nothing compiled": FIT,
            "fit of Drive, again": FIT,
            "8 restarts, 2 jobs": RESTARTS,
            "fit of Drive with its calibration": CALIBRATED,
        }
        return [{"name": name, "n": 250, "seconds": _seconds(program, cache)} for name, program in named.items()]


def _seconds(program: str, cache: str) -> float:
    begin = time.perf_counter()
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    environment["XDG_CACHE_HOME"] = cache  # of compiled functions
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    return time.perf_counter() - begin


if __name__ == "__main__":
    print(json.dumps(measure()))
