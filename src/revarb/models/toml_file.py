"""Plain values in TOML files. TOML has no None: it is the text "none" in a file."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from revarb.errors import InputError

NONE = "none"


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as plain values."""
    try:
        return _restore_none(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML, a number too long, brackets too deep
        raise InputError(f"{path} is not a TOML file: {error}") from None


def encode_toml(values: Mapping[str, Any]) -> str:
    """Plain values as TOML: numbers, texts and lists first, then a table for every dictionary."""
    return "\n".join(_list_lines(values, ())) + "\n"


def _restore_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _restore_none(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_restore_none(each) for each in value]
    return None if value == NONE else value


def _list_lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    inner = {key: value for key, value in table.items() if _is_table(value)}
    yield from (f"{_encode_key(key)} = {_encode(value)}" for key, value in table.items() if key not in inner)
    for key, value in inner.items():
        own = (*path, key)
        name = ".".join(map(_encode_key, own))
        if isinstance(value, Mapping):
            yield from ("", f"[{name}]", *_list_lines(value, own))
        else:
            for each in value:
                yield from ("", f"[[{name}]]", *_list_lines(each, own))


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)
    )


def _encode(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_encode, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else _encode_text(NONE if value is None else value)


def _encode_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _encode_text(key)


def _encode_text(text: str) -> str:
    # JSON's texts are TOML's, but for this character and for escapes of those beyond 16 bits.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
