"""Devices: training rows distributed over the devices of a mesh, and work that stays on the host's processor.

    with jax.set_mesh(revarb.row_mesh()):
        model = spec.fit(train)

Each device of a mesh sums over its share of the rows, and JAX adds up the sums. docs/guide/machines.md describes
several hosts. Without a mesh one device has all rows.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import jax
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as Spec

from revarb.errors import InputError, describe

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
