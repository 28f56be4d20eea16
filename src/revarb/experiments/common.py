"""Functions that several experiments use."""

from importlib.resources import files
from typing import TypeVar

from revarb.models.base import Fitted
from revarb.optim.status import Status

AnyFitted = TypeVar("AnyFitted", bound=Fitted)

PROTOCOL = "free simulation of the test part, cold start, scored after L + L_u samples, raw units"


def read_settings(name: str) -> str:
    """Read a TOML file of this folder, as text."""
    return files("revarb.experiments").joinpath(name).read_text(encoding="utf-8")


def raise_if_interrupted(model: AnyFitted) -> AnyFitted:
    """Return the model; raise KeyboardInterrupt where its fit was interrupted."""
    if model.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return model
