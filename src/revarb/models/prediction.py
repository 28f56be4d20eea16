"""What the `predict` methods of all models share: checks of the arguments, and the name of a horizon."""

from typing import Any

from revarb.data.series import Series
from revarb.errors import InputError, check_integer

MAX_HORIZON = 10**9  # steps ahead; more than any record has


def check_prediction(record: Any, horizon: Any) -> int:
    """Check the arguments of `predict`; return the horizon as an int."""
    steps = check_integer("horizon", horizon, least=1, most=MAX_HORIZON)
    if not isinstance(record, Series):
        raise InputError(f"predict takes a measured revarb.Series(u, y), received a {type(record).__name__}")
    return steps


def name_horizon(horizon: int) -> str:
    """The name that `Trajectory.start` has for a prediction."""
    return f"{horizon} step{'s' * (horizon > 1)} ahead"
