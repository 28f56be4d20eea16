"""Versions of the libraries and a description of the machine, stored in model and result files."""

import functools
import hashlib
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

_LIBRARIES = ("revarb", "jax", "numpy", "scipy", "equinox")

_find_version = functools.cache(version)  # reads a file


def collect_versions() -> dict[str, str]:
    """Collect the versions of revarb and of the numerical libraries."""
    return {name: _find_version(name) for name in _LIBRARIES}


def describe_machine() -> dict[str, Any]:
    """Describe the machine and the software that compute a result, with the time."""
    # platform.processor() is empty on most Linux systems.
    models = [line.split(":", 1)[1].strip() for line in _read_processor("model name")]
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": collect_versions(),
        "processor": next(iter(models), platform.processor() or platform.machine()),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }


def identify_processor() -> str:
    """A short hash of the processor's kind and instruction set."""
    features = sorted(set(_read_processor("flags", "Features", "model name"))) or [platform.processor()]
    return hashlib.sha256("".join([platform.machine(), *features]).encode()).hexdigest()[:12]


def _read_processor(*entries: str) -> list[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        return []
    return [line for line in lines if line.startswith(entries)]
