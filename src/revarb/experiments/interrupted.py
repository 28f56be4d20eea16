"""Ctrl-C in an experiment means the whole table: half a fit is no row of it."""

from typing import TypeVar

from revarb.frame import Fitted
from revarb.optimise import Status

AnyFitted = TypeVar("AnyFitted", bound=Fitted)


def uninterrupted(model: AnyFitted) -> AnyFitted:
    """The model, if its fit went to its end."""
    if model.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return model
