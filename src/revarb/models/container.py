"""The container of a model file: arrays in safetensors, all else in a JSON header. No pickle, no code runs."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from revarb.errors import InputError
from revarb.runtime.files import write_atomic
from revarb.runtime.machine import collect_versions

Tree = TypeVar("Tree")

SCHEMA = 2  # 1: without calibration; 2: with it, and outputs with different gaps
_KEY = "revarb"


def write_container(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Path:
    """Write header and arrays to one file (atomic write); schema and library versions are added to the header."""
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


def named_leaves(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree by their path in it, such as `parameters.layers.0.zeta`."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf) for path, leaf in leaves}


def blank_array(*shape: int) -> np.ndarray:
    """An array for a template; it takes no memory, whatever sizes a header claims."""
    return np.broadcast_to(np.float64(0.0), shape)


def fill_template(template: Tree, arrays: Mapping[str, np.ndarray]) -> Tree:
    """The tree of `template` with the arrays of a file; names and shapes must agree."""
    expected = named_leaves(template)
    if expected.keys() != arrays.keys():
        odd = sorted(expected.keys() ^ arrays.keys())[0]
        raise InputError(f"array {odd!r} is {'missing' if odd in expected else 'not expected'}")
    for name, array in arrays.items():
        if array.shape != expected[name].shape:
            raise InputError(f"array {name!r} has shape {array.shape}, expected {expected[name].shape}")
    return jax.tree.unflatten(jax.tree.structure(template), [arrays[name] for name in expected])


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
