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
IMPORTS = {
    "import revarb": "import revarb",
    "import revarb, and what a fit needs": "import revarb; revarb.RGP; revarb.fit",
}


def measure() -> list[dict[str, Any]]:
    """Time the programs one after the other; all but the first find compiled functions in the cache."""
    with tempfile.TemporaryDirectory() as cache:
        named = {
            "fit of Drive, nothing compiled": FIT,
            "fit of Drive, again": FIT,
            "8 restarts, 2 jobs": RESTARTS,
            "fit of Drive with its calibration": CALIBRATED,
            "fit of Drive with its calibration, again": CALIBRATED,
        }
        rows = [{"name": name, "n": 250, "seconds": _seconds(program, cache)} for name, program in named.items()]
        rows[-1]["times_fit"] = rows[-1]["seconds"] / rows[1]["seconds"]
        return [*rows, *(_import_row(name, program) for name, program in IMPORTS.items())]


def _import_row(name: str, program: str) -> dict[str, Any]:
    # The second time: Python has written its byte code.
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-c", program], stderr=subprocess.PIPE, text=True, check=True
        )
    totals = [line.split("|") for line in done.stderr.splitlines() if line.startswith("import time:")]
    microseconds = sum(int(own.removeprefix("import time:")) for own, *_ in totals[1:])
    return {"name": name, "n": 0, "seconds": 1e-6 * microseconds}


def _seconds(program: str, cache: str) -> float:
    begin = time.perf_counter()
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    environment["XDG_CACHE_HOME"] = cache  # of compiled functions
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    return time.perf_counter() - begin


if __name__ == "__main__":
    print(json.dumps(measure()))
