"""Compiled programs of a long-lived process, released before the process runs out of memory mappings.

A compiled program takes dozens of memory mappings. Linux allows a process 65530 of them (vm.max_map_count), and XLA
ends with a segmentation fault when there are no more. A process that fits records of many shapes gets there: a sweep
over records and orders, a long session in a notebook.
"""

import time
from pathlib import Path

import jax

MAPPINGS = Path("/proc/self/maps")  # a line each; other systems than Linux have no such limit
LIMIT = Path("/proc/sys/vm/max_map_count")
SHARE = 0.5  # of the limit that programs may take; one fit adds a few thousand mappings
CHECK_SECONDS = 10.0  # counting takes milliseconds, too long for every step of a live run

_last_check = float("-inf")


def release_programs() -> None:
    """Release all compiled programs if the process has too many mappings; what is needed again is compiled again.

    It looks at most once in ten seconds.
    """
    global _last_check
    now = time.monotonic()
    if now - _last_check < CHECK_SECONDS:
        return
    _last_check = now
    if count_mappings() > SHARE * find_limit():
        jax.clear_caches()


def count_mappings() -> int:
    """Count the memory mappings of this process; 0 where the system does not tell."""
    try:
        with MAPPINGS.open("rb") as file:
            return sum(1 for _ in file)
    except OSError:
        return 0


def find_limit() -> float:
    """The largest number of mappings that the system allows; infinite where it does not tell."""
    try:
        return float(LIMIT.read_text())
    except (OSError, ValueError):
        return float("inf")
