"""What configurations share: checks of their values, lags, a short repr; plain values, TOML and parameters by name."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from revarb.data.windows import Order
from revarb.errors import InputError, check_integer, describe
from revarb.models.toml_file import encode_toml, read_toml
from revarb.runtime.files import write_atomic

MODEL = "model"  # the key that names the class of a configuration inside of another one, where it can be of any class

Own = TypeVar("Own", bound="Configuration")  # not Self: annotations are executed in tests


@dataclass(frozen=True, repr=False)
class Configuration:
    """Base of the frozen dataclasses that a user writes before any data.

    It is a value: nothing changes it, and a copy of it is itself.
    """

    _prefix: ClassVar[str] = ""  # of the names of its values in messages
    _parts: ClassVar[Mapping[str, "type[Configuration]"]] = {}  # classes of the configurations among its values

    def __repr__(self) -> str:
        """The call that makes it: only values that differ from their defaults."""
        default = type(self)()
        changed = [item.name for item in fields(self) if getattr(self, item.name) != getattr(default, item.name)]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in changed)})"

    def to_dict(self) -> dict[str, Any]:
        """The configuration as plain values: numbers, texts, None, lists and dictionaries.

        Returns
        -------
        dict
            Values by the names of the parameters. A configuration inside of this one is a dictionary too; where it can
            be of any class (as in `PerOutput`), its key "model" names the class.

        Raises
        ------
        InputError
            If it has a value of another kind, such as a candidate of your own class.

        Examples
        --------
        >>> import revarb
        >>> revarb.ARX(lags=5).to_dict()
        {'lags': 5, 'input_lags': 10, 'input_delay': 1}
        """
        named = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: _to_plain(name, value, name not in self._parts) for name, value in named.items()}

    @classmethod
    def from_dict(cls: type[Own], values: Mapping[str, Any]) -> Own:
        """The configuration from plain values, such as `to_dict` returns or a TOML file has.

        Parameters
        ----------
        values : dict
            Values by the names of the parameters; what is not given has its default.

        Returns
        -------
        configuration
            Of this class.

        Raises
        ------
        InputError
            If a key is unknown or missing, or a value is invalid.

        Examples
        --------
        >>> import revarb
        >>> spec = revarb.RGP.from_dict({"lags": 5, "recipe": {"stages": [{"free": ["mu"], "iterations": 20}]}})
        >>> spec.lags, spec.recipe.stages[0].iterations
        (5, 20)
        """
        known = _check_keys(cls, values)
        return cls(**{name: _from_plain(value, cls._parts.get(name)) for name, value in known.items()})

    def to_toml(self, path: str | os.PathLike[str]) -> Path:
        """Write all values to a TOML file (atomic write), as `revarb fit --config` and `from_toml` read it.

        Parameters
        ----------
        path : path
            Name of the file.

        Returns
        -------
        pathlib.Path
            The file that was written. TOML has no None: it is the text "none" there.

        Raises
        ------
        InputError
            If the file cannot be written, or as in `to_dict`.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> import revarb
        >>> with TemporaryDirectory() as folder:
        ...     file = revarb.ARX(lags=5).to_toml(f"{folder}/arx.toml")
        ...     revarb.ARX.from_toml(file)
        ARX(lags=5, input_lags=10, input_delay=1)
        """
        return write_atomic(path, encode_toml(self.to_dict()).encode())

    @classmethod
    def from_toml(cls: type[Own], path: str | os.PathLike[str]) -> Own:
        """The configuration in a TOML file; what it does not name has its default.

        Parameters
        ----------
        path : path
            Name of the file.

        Returns
        -------
        configuration
            Of this class.

        Raises
        ------
        InputError
            If the file cannot be read, or as in `from_dict`.
        """
        return cls.from_dict(read_toml(Path(path)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The values by name, as scikit-learn has it.

        Parameters
        ----------
        deep : bool
            With those of configurations inside of this one, such as `recipe__jitter`.

        Returns
        -------
        dict
        """
        own = {item.name: getattr(self, item.name) for item in fields(self)}
        inner = {name: value for name, value in own.items() if deep and isinstance(value, Configuration)}
        return own | {f"{name}__{key}": each for name, part in inner.items() for key, each in part.get_params().items()}

    def set_params(self: Own, **params: Any) -> Own:
        """A copy with other values; unlike scikit-learn's estimators a configuration itself does not change.

        Parameters
        ----------
        **params
            Values by the names of `get_params`.

        Returns
        -------
        configuration

        Raises
        ------
        InputError
            If there is no such parameter, or a value is invalid.

        Examples
        --------
        >>> import revarb
        >>> revarb.RGP().set_params(lags=3, recipe__jitter=1e-5)
        RGP(lags=3, recipe=Recipe(jitter=1e-05))
        """
        own, inner = {}, defaultdict(dict)
        for name, value in params.items():
            first, _, rest = name.partition("__")
            if rest:
                inner[first][rest] = value
            else:
                own[first] = value
        known = self.get_params(deep=False)
        for name in (*own, *inner):
            if name not in known:
                raise InputError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}")
        changed = replace(self, **own)
        return replace(changed, **{name: changed._set_inner(name, values) for name, values in inner.items()})

    def _set_inner(self, name: str, values: Mapping[str, Any]) -> "Configuration":
        part = getattr(self, name)
        if not isinstance(part, Configuration):
            first = next(iter(values))
            raise InputError(f"{name} is {describe(part)}, which has no parameter {first!r}; set {name} first")
        return part.set_params(**values)

    def __sklearn_clone__(self: Own) -> Own:
        return self

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


def _check_keys(cls: type[Configuration], values: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(values, Mapping):
        what = cls._prefix.rstrip(".") or "the configuration"
        raise InputError(f"{what} must be a table of values, received {describe(values)}")
    known = {item.name: item.default is MISSING and item.default_factory is MISSING for item in fields(cls)}
    for key in values:
        if key not in known:
            name = cls._prefix + str(key)
            raise InputError(f"unknown key {name!r} in the configuration; known are {', '.join(known)}")
    for name, required in known.items():
        if required and name not in values:
            raise InputError(f"key {cls._prefix + name!r} is missing in the configuration")
    return values


def _to_plain(name: str, value: Any, any_class: bool) -> Any:
    if isinstance(value, Configuration):
        return {MODEL: type(value).__name__, **value.to_dict()} if any_class else value.to_dict()
    if isinstance(value, tuple | list):
        return [_to_plain(name, each, any_class) for each in value]
    if isinstance(value, Mapping):
        return {key: _to_plain(name, each, any_class) for key, each in value.items()}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise InputError(f"{name} has {describe(value)}, which is neither a configuration of revarb nor a plain value")


def _from_plain(value: Any, part: type[Configuration] | None) -> Any:
    # Tables become configurations; the checks of the class refuse what they must not be.
    if isinstance(value, tuple | list):
        return tuple(_from_plain(each, part) for each in value)
    if not isinstance(value, Mapping):
        return value
    if part is not None:
        return part.from_dict(value)
    if MODEL in value:
        return _find_class(value[MODEL]).from_dict({key: each for key, each in value.items() if key != MODEL})
    return {key: _from_plain(each, None) for key, each in value.items()}


def _find_class(name: object) -> type[Configuration]:
    known = {cls.__name__: cls for cls in _list_subclasses(Configuration) if hasattr(cls, "fit")}
    if not isinstance(name, str) or name not in known:
        raise InputError(f"unknown model {describe(name)} in the configuration; known are {', '.join(sorted(known))}")
    return known[name]


def _list_subclasses(cls: type[Configuration]) -> Iterator[type[Configuration]]:
    for each in cls.__subclasses__():
        yield from (each, *_list_subclasses(each))
