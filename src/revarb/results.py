"""Results files: `{"meta": {...}, "rows": [...]}` with flat rows, and what they say about where they were made."""

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from revarb.files import write_whole
from revarb.store import library_versions


def write_results(path: str | os.PathLike[str], meta: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write a results file, whole or not at all; what is not a number becomes null."""
    content = {"meta": {**meta, **machine()}, "rows": [{key: _plain(v) for key, v in row.items()} for row in rows]}
    return write_whole(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def machine() -> dict[str, Any]:
    """Where and with what a result was computed."""
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": library_versions(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }


def _processor() -> str:
    # platform.processor() is empty on most Linux systems.
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
