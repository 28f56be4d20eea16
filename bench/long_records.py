"""One evaluation of the bound of a long record: `python -m bench.long_records SAMPLES`, one process per size."""

import json
import resource
import sys
from typing import Any

from bench.problems import QUICK_START, make_fit_step, make_problem
from bench.timing import time_median
from revarb.runtime.numerics import with_numerics


@with_numerics
def measure(samples: int) -> dict[str, Any]:
    """Time and memory at one size."""
    seconds = time_median(make_fit_step(make_problem(samples, QUICK_START)), repetitions=5)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"name": "long record", "n": samples, "seconds": seconds, "peak_mib": peak}


if __name__ == "__main__":
    print(json.dumps([measure(int(sys.argv[1]))]))
