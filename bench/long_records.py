"""One evaluation of the bound of a long record: `python -m bench.long_records SAMPLES`, a process for each size."""

import json
import resource
import sys
from typing import Any

from bench.problems import HASTY, fit_step, problem
from bench.timing import median_seconds
from revarb.runtime.numerics import with_numerics


@with_numerics
def row(samples: int) -> dict[str, Any]:
    """Time and memory at one size."""
    seconds = median_seconds(fit_step(problem(samples, HASTY)), repetitions=5)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"name": "long record", "n": samples, "seconds": seconds, "peak_mib": peak}


if __name__ == "__main__":
    print(json.dumps([row(int(sys.argv[1]))]))
