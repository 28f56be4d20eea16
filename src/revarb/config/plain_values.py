"""Checks of plain values that come from TOML, JSON or a dictionary."""

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from revarb.errors import InputError, describe


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


def describe_changes(config: Any) -> str:
    """A configuration as the call that makes it: only fields that differ from their defaults."""
    made = type(config)()
    changed = [item.name for item in fields(config) if getattr(config, item.name) != getattr(made, item.name)]
    return f"{type(config).__name__}({', '.join(f'{name}={getattr(config, name)!r}' for name in changed)})"


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as plain values."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML, a number too long, brackets too deep
        raise InputError(f"{path} is not a TOML file: {error}") from None
