"""A user's mistake: one exception, which the command line turns into one line and exit status 2, and common checks."""

import numbers
import operator

LONGEST_MESSAGE = 1000


class InputError(ValueError):
    """Something the caller passed is wrong; the message says what, what was received and what to do, in one line."""

    def __init__(self, message: str):
        super().__init__(shortened(message, LONGEST_MESSAGE))


def shortened(text: str, longest: int) -> str:
    """`text` in one line: what a caller passed may have had many, or a million letters in one."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 2]} …"


def shown(value: object) -> str:
    """What was received, as a message shows it."""
    try:
        return shortened(repr(value), 200)
    except (ValueError, RecursionError):  # a number of thousands of digits, or lists in lists in lists
        return f"a {type(value).__name__} too large to print"


def check_whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """`value` as a plain int; refuse what is not a whole number from `least` to `most`."""
    limits = f"of at least {least}" if most is None else f"from {least} to {most}"
    wrong = InputError(f"{name} must be a whole number {limits}, received {shown(value)}")
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
        except OverflowError:  # a whole number has no largest, a float has
            number = float("inf")
        if abs(number) < float("inf") and number > above and number >= least:
            return number
    limit = f" above {above:g}" if above > -1e300 else f" of at least {least:g}" if least > -1e300 else ""
    raise InputError(f"{name} must be a finite number{limit}, received {shown(value)}")


def check_seed(seed: object) -> int:
    """`seed` as a plain int that every random generator takes."""
    return check_whole("seed", seed, least=0, most=2**63 - 1)
