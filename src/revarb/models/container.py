"""The file of a trained model: a JSON header and arrays in safetensors. It is read without JAX.

No pickle, and no code runs: the arrays of a file must have the names and shapes of a template, and valid values
(models/model_file.py).
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from revarb.data.dataframes import column_names
from revarb.data.series import check_time_name
from revarb.errors import InputError, check_number
from revarb.runtime.files import write_atomic

SCHEMA = 2  # 1: without calibration; 2: with it, and outputs with different gaps
_KEY = "revarb"


def write_container(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Path:
    """Write header and arrays to one file (atomic write); schema and library versions are added to the header."""
    from revarb.runtime.machine import collect_versions  # JAX, which reading does not need

    text = json.dumps({"schema": SCHEMA, "versions": collect_versions(), **header})
    tensors = {name: np.array(array, dtype=np.float64, order="C") for name, array in arrays.items()}
    return write_atomic(path, save(tensors, metadata={_KEY: text, "sha256": checksum(text, tensors)}))


def checksum(header: str, arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of the header and all arrays."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        digest.update(f"{name}{arrays[name].shape}".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()


def read_container(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a model file; one that is foreign, damaged or too new raises `InputError`."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            header = _header(path, metadata)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
    except (SafetensorError, TypeError):
        raise _foreign(path) from None
    except OSError as error:
        raise InputError(f"cannot read the model file {path}: {error.strerror or error}") from None
    if metadata.get("sha256") != checksum(metadata[_KEY], arrays):
        raise InputError(f"{path} is damaged: its checksum differs; use a copy of it, or save the model again")
    for name, array in arrays.items():
        if array.dtype != np.float64 or not np.isfinite(array).all():
            raise InputError(f"{path} is damaged: array {name!r} does not hold finite float64 numbers")
    return header, arrays


def _header(path: str | os.PathLike[str], metadata: Mapping[str, str]) -> dict[str, Any]:
    try:
        header = json.loads(metadata[_KEY])
        schema = header["schema"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _foreign(path) from None
    if isinstance(schema, bool) or not isinstance(schema, int) or schema < 1:
        raise _foreign(path)
    if schema > SCHEMA:
        raise InputError(f"{path} has schema {schema}, but this revarb reads up to {SCHEMA}; upgrade revarb to open it")
    return header


def _foreign(path: str | os.PathLike[str]) -> InputError:
    return InputError(f"{path} is not a revarb model, or is cut short; give a file that `revarb fit` wrote")


@contextmanager
def open_contents(path: str | os.PathLike[str]) -> Iterator[None]:
    """What is wrong with the contents of a model file, as an `InputError` that names it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path} cannot be opened: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}: {error}); save the model again") from None


class ModelColumns(NamedTuple):
    """What the records of a model are called, and how they are sampled."""

    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    dt: float
    time_name: str | None


def read_columns(path: str | os.PathLike[str]) -> ModelColumns:
    """The columns of a model file, for checks before JAX is imported."""
    header, _ = read_container(path)
    with open_contents(path):
        return find_columns(header)


def find_columns(header: Mapping[str, Any]) -> ModelColumns:
    """The columns that a header names."""
    scaling = header["standardiser"]
    return ModelColumns(
        column_names("u", header["input_names"], len(scaling["u_mean"])),
        column_names("y", header["output_names"], len(scaling["y_mean"])),
        check_number("dt", header["dt"], above=0.0),
        check_time_name(header.get("time_name")),  # files written before version 0.2 have none
    )
