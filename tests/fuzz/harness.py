"""Running properties: cases drawn by hypothesis with a fixed seed, a timeout for each, and counts."""

import faulthandler
import resource
import sys
import traceback
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
    """`holds(case)` says whether there was a result (or else a clear error), and raises for anything else."""

    holds: Callable[[Any], bool]
    cases: SearchStrategy
    count: int


class Outcome(NamedTuple):
    """Counts and failure of the cases of one property."""

    name: str
    cases: int
    refused: int
    failure: str


def run(name: str, one: Property, length: str) -> Outcome:
    """All cases of a property, until one fails."""
    answers: list[bool] = []

    def watched(case: Any) -> None:
        faulthandler.dump_traceback_later(CASE_TIMEOUT, exit=True)
        answers.append(one.holds(case))

    repeatable = settings(
        max_examples=max(10, round(one.count * SHARES[length])), deadline=None, derandomize=True, database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
    )  # fmt: skip
    try:
        repeatable(given(one.cases)(watched))()
        failure = ""
    except BaseException:  # a failure is reported, also that of memory, or a SystemExit
        failure = traceback.format_exc()[-6000:]
    finally:
        faulthandler.cancel_dump_traceback_later()
    return Outcome(name, len(answers), answers.count(False), failure)


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
