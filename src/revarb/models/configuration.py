"""What configurations share: checks of their values, lags, a short repr, and plain values from TOML, JSON or a dict."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from revarb.data.windows import Order
from revarb.errors import InputError, check_integer, describe


@dataclass(frozen=True, repr=False)
class Configuration:
    """Base of the frozen dataclasses that a user writes before any data."""

    _prefix: ClassVar[str] = ""  # of the names of its values in messages

    def __repr__(self) -> str:
        """The call that makes it: only values that differ from their defaults."""
        default = type(self)()
        changed = [item.name for item in fields(self) if getattr(self, item.name) != getattr(default, item.name)]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in changed)})"

    def _check(self, names: Iterable[str], check: Callable[..., Any], *limits: Any, **named_limits: Any) -> None:
        # Replace values by what `check(name, value, …)` returns: a plain int in place of NumPy's, for example.
        for name in names:
            checked = check(self._prefix + name, getattr(self, name), *limits, **named_limits)
            object.__setattr__(self, name, checked)


@dataclass(frozen=True, repr=False)
class Lagged(Configuration):
    """The part of a configuration that all models with lags share.

    Parameters
    ----------
    lags : int
        L: number of past states (of a NARX model: outputs) among the regressors.
    input_lags : int
        L_u: number of past inputs among the regressors.
    input_delay : int
        Age of the newest input: 1 as in the paper, 0 for direct feedthrough, k for a dead time of k samples.
    """

    lags: int = 10
    input_lags: int = 10
    input_delay: int = 1

    def __post_init__(self):
        self._check(("lags", "input_lags"), check_integer, least=1)
        self._check(("input_delay",), check_integer, least=0)

    def order_for(self, inputs: int) -> Order:
        """The order of the model for a system with this number of inputs.

        Parameters
        ----------
        inputs : int
            Number of inputs of the system.

        Returns
        -------
        Order
            `lags`, `input_lags` and `input_delay`; `input_lags` is 0 for a system without inputs.
        """
        return Order(self.lags, self.input_lags if inputs else 0, self.input_delay)


def check_flag(name: str, value: object) -> bool:
    """`value` if it is a bool; anything else is refused."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be true or false, received {describe(value)}")
    return value


def check_word(name: str, value: object, known: tuple[str, ...]) -> str:
    """`value` if it is one of the known words; anything else is refused."""
    if not isinstance(value, str) or value not in known:
        *first, last = map(repr, known)
        raise InputError(f"{name} must be {', '.join(first)} or {last}, received {describe(value)}")
    return value


def check_integers(name: str, values: object, least: int, most: int | None = None) -> tuple[int, ...]:
    """A list of whole numbers within limits, one at least, as a tuple."""
    if not isinstance(values, tuple | list) or not values:
        raise InputError(f"{name} must be a list of whole numbers, received {describe(values)}")
    return tuple(check_integer(name, value, least, most) for value in values)


def check_keys(cls: type, values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A copy of `values`, all of whose keys are fields of the dataclass `cls`; another key is refused by name."""
    if not isinstance(values, Mapping):
        what = prefix.rstrip(".") or "the configuration"
        raise InputError(f"{what} must be a table of values, received {describe(values)}")
    known = [item.name for item in fields(cls)]
    for key in values:
        if key not in known:
            raise InputError(f"unknown key {prefix + str(key)!r} in the configuration; known are {', '.join(known)}")
    return dict(values)


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as plain values."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML, a number too long, brackets too deep
        raise InputError(f"{path} is not a TOML file: {error}") from None
