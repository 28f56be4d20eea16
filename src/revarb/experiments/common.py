"""What the experiments share: their settings files, and the end of an interrupted one."""

from importlib.resources import files
from typing import TypeVar

from revarb.models.base import Fitted
from revarb.optim.status import Status


def read_settings(name: str) -> str:
    """A TOML file of this folder, as text."""
    return files("revarb.experiments").joinpath(name).read_text(encoding="utf-8")


AnyFitted = TypeVar("AnyFitted", bound=Fitted)


def raise_if_interrupted(model: AnyFitted) -> AnyFitted:
    """The model, if its fit went to its end."""
    if model.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return model
