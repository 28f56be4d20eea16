"""From a model file back to a model."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from revarb import store
from revarb.ensemble import Ensemble
from revarb.errors import InputError
from revarb.fitted import FittedRGP, rgp_from_file


def load(path: str | os.PathLike[str]) -> FittedRGP | Ensemble:
    """Read a model that `save` wrote."""
    header, arrays = store.read_model(path)
    try:
        return _from_file(header, arrays)
    except InputError as error:
        raise InputError(f"{path} cannot be opened: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}: {error}); save the model again") from None


def _from_file(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> FittedRGP | Ensemble:
    kind = header["kind"]
    if kind == "RGP":
        return rgp_from_file(header, arrays)
    if kind == "Ensemble":
        shares = _by_member(arrays)
        if shares.keys() != {str(number) for number in range(len(header["members"]))}:
            raise InputError(f"it names {len(header['members'])} members and has arrays of {len(shares)}")
        return Ensemble.of([rgp_from_file(part, shares[str(k)]) for k, part in enumerate(header["members"])])
    raise InputError(f"it holds a model of kind {kind!r}, and this revarb knows 'RGP' and 'Ensemble'")


def _by_member(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    shares: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        member, _, rest = name.partition(".")
        shares.setdefault(member, {})[rest] = array
    return shares
