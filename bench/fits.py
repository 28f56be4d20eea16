"""Whole fits of Drive in fresh interpreters: cold, warm, and eight restarts."""

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


def rows() -> list[dict[str, Any]]:
    """Every interpreter finds what the one before has compiled."""
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
    environment["XDG_CACHE_HOME"] = cache  # where revarb keeps its programs
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    return time.perf_counter() - begin


if __name__ == "__main__":
    print(json.dumps(rows()))
