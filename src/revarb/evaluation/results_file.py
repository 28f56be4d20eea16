"""Results files: `{"meta": {...}, "rows": [...]}` with flat rows; meta describes the run and the machine."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from revarb.runtime.files import write_atomic
from revarb.runtime.machine import describe_machine


def write_results(path: str | os.PathLike[str], meta: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write a results file (atomic write); NaN and infinity become null."""
    content = {
        "meta": {**meta, **describe_machine()},
        "rows": [{key: _plain(v) for key, v in row.items()} for row in rows],
    }
    return write_atomic(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):  # scores of several outputs
        return {key: _plain(each) for key, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
