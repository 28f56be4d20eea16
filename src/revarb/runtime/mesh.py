"""Rows over devices: every device of a mesh takes its share of the training rows, and JAX adds up what they found.

    with jax.set_mesh(revarb.row_mesh()):
        model = spec.fit(train)

docs/machines.md says how to do it on several hosts. Without a mesh there is one share, all rows.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import jax
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as Spec

from revarb.errors import InputError

AXIS = "rows"


P = ParamSpec("P")


T = TypeVar("T")


Shared = TypeVar("Shared")


Rows = TypeVar("Rows")


Sums = TypeVar("Sums")


def row_mesh(devices: Sequence[Any] | None = None) -> Mesh:
    """A mesh over which a fit spreads its rows: over these devices, or all that JAX has, on all joined hosts."""
    chosen = jax.devices() if devices is None else list(devices) if isinstance(devices, list | tuple) else []
    if not chosen or not all(isinstance(device, jax.Device) for device in chosen):
        raise InputError(f"row_mesh takes a list of one or more JAX devices, received {devices!r}")
    return jax.make_mesh((len(chosen),), (AXIS,), (AxisType.Auto,), devices=chosen)


def replicate_results(function: Callable[P, T]) -> Callable[P, T]:
    """A function to compile whose results every device, and so every host, can read."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        result = function(*args, **kwargs)
        return _replicate(result) if devices_in_mesh() > 1 else result

    return wrapped


def sum_over_rows(function: Callable[[Shared, Rows], Sums], shared: Shared, rows: Rows) -> Sums:
    """`function(shared, rows)`, a tree of sums over the rows, by all devices of the mesh that is set."""
    devices = devices_in_mesh()
    if devices == 1:
        return function(shared, rows)
    # Said of all that goes in and out: or XLA would spread the small matrices too, and talk much more.
    shared, rows = _replicate(shared), _replicate(rows)
    count = jax.tree.leaves(rows)[0].shape[0]
    even = count - count % devices
    parts = [_sharded(function)(shared, jax.tree.map(lambda values: values[:even], rows))] if even else []
    if even < count:  # fewer rows than devices are left: all of them compute these
        parts.append(function(shared, jax.tree.map(lambda values: values[even:], rows)))
    return _replicate(jax.tree.map(lambda *several: sum(several[1:], start=several[0]), *parts))


def devices_in_mesh() -> int:
    """Number of devices that share the rows: those of the mesh that is set, or one."""
    return dict(jax.sharding.get_abstract_mesh().shape).get(AXIS, 1)


def _sharded(function: Callable[[Shared, Rows], Sums]) -> Callable[[Shared, Rows], Sums]:
    def share(shared: Shared, rows: Rows) -> Sums:
        return jax.lax.psum(function(shared, rows), AXIS)

    return jax.shard_map(share, in_specs=(Spec(), Spec(AXIS)), out_specs=Spec(), check_vma=False)


def _replicate(tree: T) -> T:
    return jax.lax.with_sharding_constraint(tree, Spec())
