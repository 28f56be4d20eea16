"""Exceptions, checks of arguments, and warnings that point at the caller's line."""

import numbers
import operator
import os
import sys
import warnings
from pathlib import Path

MAX_MESSAGE = 1000  # characters

_PACKAGE = f"{Path(__file__).parent}{os.sep}"
_WRAPPERS = ("contextlib.py", "functools.py")  # frames of decorators and context managers between two of ours


class RevarbError(Exception):
    """Base of all errors that revarb raises on purpose; the message is one line."""

    def __init__(self, message: str):
        super().__init__(shorten(message, MAX_MESSAGE))


class InputError(RevarbError, ValueError):
    """Something the caller passed is wrong; the message says what, what was received and what to do.

    Examples
    --------
    >>> import revarb
    >>> try:
    ...     revarb.RGP(lags=0)
    ... except revarb.InputError as error:
    ...     print(error)
    lags must be a whole number of at least 1, received 0
    """


class ComputationError(RevarbError, RuntimeError):
    """The arguments were valid but the computation failed: it diverged, or a worker process died.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> path = revarb.Trajectory(np.zeros((3, 1)), np.full((3, 1), 1e308), "moments", 0, ("y",))
    >>> try:
    ...     path.interval(0.95)
    ... except revarb.ComputationError as error:
    ...     print(error)
    the ends of the band overflow; rescale the outputs
    """


class QualityWarning(UserWarning):
    """A column looks as if a sensor or a logger had spoiled it (clipped, rounded coarsely, stuck), or rows as shuffled.

    `read_records`, `fit` and `compare` issue it, once in a call. The values are used as they are.

    Examples
    --------
    >>> import warnings, revarb
    >>> warnings.simplefilter("ignore", revarb.QualityWarning)  # the record is known to be so
    """


def shorten(text: str, longest: int) -> str:
    """`text` as one line of at most `longest` characters."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 2]} …"


def describe(value: object) -> str:
    """A received value as a message shows it."""
    try:
        return shorten(repr(value), 200)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or deeply nested lists
        return f"a {type(value).__name__} too large to print"


def check_integer(name: str, value: object, least: int, most: int | None = None) -> int:
    """`value` as a plain int; refuse what is not a whole number from `least` to `most`."""
    limits = f"of at least {least}" if most is None else f"from {least} to {most}"
    wrong = InputError(f"{name} must be a whole number {limits}, received {describe(value)}")
    if isinstance(value, bool):
        raise wrong
    try:
        whole = operator.index(value)  # pyright: ignore[reportArgumentType] (that is the question)
    except TypeError:
        raise wrong from None
    if whole < least or (most is not None and whole > most):
        raise wrong
    return whole


def check_number(name: str, value: object, above: float = float("-inf"), least: float = float("-inf")) -> float:
    """`value` as a plain float; refuse what is not a finite number above `above` and at least `least`."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # an integer can be larger than any float
            number = float("inf")
        if abs(number) < float("inf") and number > above and number >= least:
            return number
    limit = f" above {above:g}" if above > -1e300 else f" of at least {least:g}" if least > -1e300 else ""
    raise InputError(f"{name} must be a finite number{limit}, received {describe(value)}")


def check_seed(seed: object) -> int:
    """`seed` as a plain int that every random generator takes."""
    if hasattr(seed, "__len__") and not isinstance(seed, str):  # fit(u, y), as other libraries have it
        raise InputError(
            f"fit takes a record and a seed, received a {type(seed).__name__} as the seed; wrap u and y: "
            "fit(revarb.Series(u, y))"
        )
    return check_integer("seed", seed, least=0, most=2**63 - 1)


def warn_user(message: str, category: type[UserWarning] = UserWarning) -> None:
    """Issue a warning whose location is the caller's line, however deep inside revarb it is raised."""
    warnings.warn(message, category, stacklevel=_depth_of_caller())


def _depth_of_caller() -> int:
    # For `warnings.warn` called from `warn_user`: 1 is `warn_user` itself.
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_code.co_filename):
        depth, frame = depth + 1, frame.f_back
    return depth


def _is_ours(filename: str) -> bool:
    return filename.startswith(_PACKAGE) or filename.endswith(_WRAPPERS)
