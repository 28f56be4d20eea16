"""Functions that several experiments use."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Protocol, TypeVar, runtime_checkable

from revarb.errors import InputError
from revarb.models.base import Fitted
from revarb.optim.status import Status

AnyFitted = TypeVar("AnyFitted", bound=Fitted)


@runtime_checkable
class Named(Protocol):
    """A record of a table."""

    @property
    def name(self) -> str:
        """Its name."""
        ...


AnyNamed = TypeVar("AnyNamed", bound=Named)

PROTOCOL = "free simulation of the test part, cold start, scored after L + L_u samples, raw units"


def read_settings(name: str) -> str:
    """Read a TOML file of this folder, as text."""
    return files("revarb.experiments").joinpath(name).read_text(encoding="utf-8")


def raise_if_interrupted(model: AnyFitted) -> AnyFitted:
    """Return the model; raise KeyboardInterrupt where its fit was interrupted."""
    if model.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return model


def select_records(records: Sequence[AnyNamed], names: Sequence[str]) -> tuple[AnyNamed, ...]:
    """Select the records with these names; an unknown one is refused."""
    known = [record.name for record in records]
    for name in names:
        if name not in known:
            raise InputError(f"no record {name!r} in this table; there are {', '.join(known)}")
    return tuple(record for record in records if record.name in names)
