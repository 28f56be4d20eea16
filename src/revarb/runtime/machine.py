"""Versions of the libraries and a description of the machine, stored in model and result files."""

import functools
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

_LIBRARIES = ("revarb", "jax", "numpy", "scipy", "equinox")


def collect_versions() -> dict[str, str]:
    """Collect the versions of revarb and of the numerical libraries."""
    return {name: _find_version(name) for name in _LIBRARIES}


_find_version = functools.cache(version)  # reads a file


def describe_machine() -> dict[str, Any]:
    """Describe the machine and the software that compute a result, with the time."""
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": collect_versions(),
        "processor": _find_processor_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }


def _find_processor_name() -> str:
    # platform.processor() is empty on most Linux systems.
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
