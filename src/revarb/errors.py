"""A user's mistake: one exception, which the command line turns into one line and exit status 2, and common checks."""

import numbers
import operator


class InputError(ValueError):
    """Something the caller passed is wrong; the message says what, what was received and what to do."""


def check_whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """`value` as a plain int; refuse what is not a whole number from `least` to `most`."""
    limits = f"of at least {least}" if most is None else f"from {least} to {most}"
    wrong = InputError(f"{name} must be a whole number {limits}, received {value!r}")
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
        number = float(value)
        if abs(number) < float("inf") and number > above and number >= least:
            return number
    limit = f" above {above:g}" if above > -1e300 else f" of at least {least:g}" if least > -1e300 else ""
    raise InputError(f"{name} must be a finite number{limit}, received {value!r}")


def check_seed(seed: object) -> int:
    """`seed` as a plain int that every random generator takes."""
    return check_whole("seed", seed, least=0, most=2**63 - 1)
