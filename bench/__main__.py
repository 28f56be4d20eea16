"""`python -m bench [--threads K] [--json FILE]` (Linux: it counts cores and memory as Linux does)."""

import argparse
import os
from pathlib import Path


def main() -> None:
    options = _options()
    _use_cores(options.threads)
    from bench.speed import run  # only now: NumPy and JAX count the cores when they are imported

    run(options.threads, options.json)


def _options() -> argparse.Namespace:
    usable = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(prog="python -m bench", description="Speed and memory of the REVARB bound.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    parser.add_argument(
        "--threads",
        type=int,
        default=usable,
        choices=range(1, usable + 1),
        metavar="K",
        help=f"use so many cores (default: all {usable} that are usable)",
    )
    return parser.parse_args()


def _use_cores(count: int) -> None:
    # The affinity binds XLA's thread pool; BLAS would follow the variables that the user may have set instead.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(count)


if __name__ == "__main__":
    main()
