"""Points in time as texts."""

import re
from datetime import datetime

_DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[ T]+(.+))?", re.ASCII)
_SHORT_HOUR = re.compile(r"\d:")


def parse_time(text: str) -> datetime:
    """A time in ISO 8601, or as dd.mm.yyyy with or without a time of day; ValueError for anything else.

    With slashes day and month cannot be told apart.
    """
    written = text.strip()
    found = _DAY_FIRST.fullmatch(written)
    if found is None:
        return datetime.fromisoformat(written)
    day, month, year, clock = found.groups(default="0:00")
    clock = f"0{clock}" if _SHORT_HOUR.match(clock) else clock
    return datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}T{clock}")
