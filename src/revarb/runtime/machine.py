"""The machine: versions and hardware for model and result files, devices and meshes of JAX."""

import functools
import hashlib
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import jax
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as Spec

from revarb.errors import InputError, describe

_LIBRARIES = ("revarb", "jax", "numpy", "scipy", "equinox")

_find_version = functools.cache(version)  # reads a file


def collect_versions() -> dict[str, str]:
    """Collect the versions of revarb and of the numerical libraries."""
    return {name: _find_version(name) for name in _LIBRARIES}


def describe_machine() -> dict[str, Any]:
    """Describe the machine and the software that compute a result, with the time."""
    # platform.processor() is empty on most Linux systems.
    models = [line.split(":", 1)[1].strip() for line in _read_processor("model name")]
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": collect_versions(),
        "processor": next(iter(models), platform.processor() or platform.machine()),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }


def identify_processor() -> str:
    """A short hash of the processor's kind and instruction set."""
    features = sorted(set(_read_processor("flags", "Features", "model name"))) or [platform.processor()]
    return hashlib.sha256("".join([platform.machine(), *features]).encode()).hexdigest()[:12]


def _read_processor(*entries: str) -> list[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        return []
    return [line for line in lines if line.startswith(entries)]


AXIS = "rows"

P = ParamSpec("P")
T = TypeVar("T")
Shared = TypeVar("Shared")
Rows = TypeVar("Rows")
Sums = TypeVar("Sums")


def row_mesh(devices: Sequence[Any] | None = None) -> Mesh:
    """Make a JAX mesh over which a fit distributes its training rows.

    Parameters
    ----------
    devices : list of jax.Device, optional
        The devices to use; by default all that JAX has, on all hosts that compute together.

    Returns
    -------
    jax.sharding.Mesh
        A mesh with the single axis "rows", for `jax.set_mesh`.

    Raises
    ------
    InputError
        If `devices` is not a list of one or more JAX devices.

    Examples
    --------
    >>> import jax
    >>> import revarb
    >>> mesh = revarb.row_mesh(jax.devices()[:1])
    >>> mesh.axis_names, mesh.size
    (('rows',), 1)
    """
    chosen = jax.devices() if devices is None else list(devices) if isinstance(devices, list | tuple) else []
    if not chosen or not all(isinstance(device, jax.Device) for device in chosen):
        raise InputError(f"row_mesh takes a list of one or more JAX devices, received {describe(devices)}")
    return jax.make_mesh((len(chosen),), (AXIS,), (AxisType.Auto,), devices=chosen)


def replicate_results(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to be compiled so that every device, and so every host, has its results."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        result = function(*args, **kwargs)
        return _replicate(result) if count_devices() > 1 else result

    return wrapped


def sum_over_rows(function: Callable[[Shared, Rows], Sums], shared: Shared, rows: Rows) -> Sums:
    """Compute `function(shared, rows)`, a tree of sums over the rows, on all devices of the current mesh."""
    devices = count_devices()
    if devices == 1:
        return function(shared, rows)
    # Everything is declared replicated: XLA would otherwise shard the small matrices too, and communicate much more.
    shared, rows = _replicate(shared), _replicate(rows)
    count = jax.tree.leaves(rows)[0].shape[0]
    even = count - count % devices
    parts = [_shard(function)(shared, jax.tree.map(lambda values: values[:even], rows))] if even else []
    if even < count:  # the remaining rows are fewer than the devices: every device computes them all
        parts.append(function(shared, jax.tree.map(lambda values: values[even:], rows)))
    return _replicate(jax.tree.map(lambda *several: sum(several[1:], start=several[0]), *parts))


def count_devices() -> int:
    """Count the devices that share the rows: those of the current mesh, or one."""
    return dict(jax.sharding.get_abstract_mesh().shape).get(AXIS, 1)


@contextmanager
def on_host() -> Iterator[None]:
    """Compute on the host's own processor in this block; also a decorator.

    For recursions and start values, on few numbers: on an accelerator every step of a recursion is a launch of its own,
    and every operation outside of a compiled function is a program to compile. Nothing is changed on a CPU, and on a
    mesh of devices.
    """
    if jax.default_backend() == "cpu" or count_devices() > 1:
        yield
        return
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        yield


def _shard(function: Callable[[Shared, Rows], Sums]) -> Callable[[Shared, Rows], Sums]:
    def add_shares(shared: Shared, rows: Rows) -> Sums:
        return jax.lax.psum(function(shared, rows), AXIS)

    return jax.shard_map(add_shares, in_specs=(Spec(), Spec(AXIS)), out_specs=Spec(), check_vma=False)


def _replicate(tree: T) -> T:
    return jax.lax.with_sharding_constraint(tree, Spec())
