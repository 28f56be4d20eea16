"""Running properties: cases drawn by hypothesis with a fixed seed, and a timeout for each."""

import faulthandler
import resource
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

from revarb.data.trajectory import Trajectory
from revarb.errors import RevarbError

CASE_TIMEOUT = 600.0  # seconds for one case: a hang ends the process, with a traceback; enough on a busy core
SPARE_MEMORY = 3 * 2**30  # bytes that all cases together may take beyond what is taken at the start
SHARES = {"short": 1 / 8, "long": 4}  # of the number of cases of a property


class Property(NamedTuple):
    """`check(case)` raises unless there was a result of finite numbers or a clear error."""

    check: Callable[[Any], None]
    cases: SearchStrategy
    count: int


def run(one: Property, length: str) -> None:
    """All cases of a property, until one fails."""

    def watched(case: Any) -> None:
        faulthandler.dump_traceback_later(CASE_TIMEOUT, exit=True)
        one.check(case)

    repeatable = settings(
        max_examples=max(10, round(one.count * SHARES[length])), deadline=None, derandomize=True, database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
    )  # fmt: skip
    try:
        repeatable(given(one.cases)(watched))()
    finally:
        faulthandler.cancel_dump_traceback_later()


def limit_memory() -> None:
    """Limit the memory of this process to little more than it uses now."""
    if sys.platform == "linux":
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + SPARE_MEMORY, taken + SPARE_MEMORY))


def strict_warnings() -> None:
    """Turn warnings into errors, except those meant for users."""
    warnings.simplefilter("error")
    warnings.simplefilter("default", UserWarning)


def check_path(path: Trajectory | None) -> None:
    """Assert that a trajectory, if there is one, and its band are finite."""
    assert path is None or np.isfinite(path.mean).all()
    if path is not None and path.std is not None:
        assert np.isfinite(path.std).all() and (path.std >= 0.0).all()
        band = attempt(lambda: path.interval(0.95))
        assert band is None or np.isfinite(band).all()


def attempt(action: Callable[[], Any]) -> Any:
    """What `action` returns, or None if it raised a clear error of one line."""
    try:
        return action()
    except RevarbError as error:
        text = str(error)
        assert text and "\n" not in text and len(text) <= 1200, text
        return None
