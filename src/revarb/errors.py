"""A user's mistake: one exception, which the command line turns into one line and exit status 2, and common checks."""


class InputError(ValueError):
    """Something the caller passed is wrong; the message says what, what was received and what to do."""


def check_whole(name: str, value: object, least: int) -> None:
    """Refuse what is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, received {value!r}")


def check_number(name: str, value: object, above: float = float("-inf"), least: float = float("-inf")) -> None:
    """Refuse what is not a finite number above `above` and at least `least`."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        suits = abs(value) < float("inf") and value > above and value >= least
    else:
        suits = False
    if not suits:
        limit = f" above {above:g}" if above > float("-inf") else f" of at least {least:g}" if least > -1e300 else ""
        raise InputError(f"{name} must be a finite number{limit}, received {value!r}")
