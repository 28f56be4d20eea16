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

AXIS = "rows"

P = ParamSpec("P")
T = TypeVar("T")
Shared = TypeVar("Shared")
Rows = TypeVar("Rows")
Sums = TypeVar("Sums")


def row_mesh(devices: Sequence[Any] | None = None) -> Mesh:
    """A mesh over which a fit spreads its rows: over these devices, or all that JAX has, on all joined hosts."""
    chosen = jax.devices() if devices is None else list(devices)
    return jax.make_mesh((len(chosen),), (AXIS,), (AxisType.Auto,), devices=chosen)


def on_every_device(function: Callable[P, T]) -> Callable[P, T]:
    """A function to compile whose results every device, and so every host, can read."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        result = function(*args, **kwargs)
        return jax.lax.with_sharding_constraint(result, Spec()) if _devices() > 1 else result

    return wrapped


def sum_over_rows(function: Callable[[Shared, Rows], Sums], shared: Shared, rows: Rows) -> Sums:
    """`function(shared, rows)`, a tree of sums over the rows, by all devices of the mesh that is set."""
    devices = _devices()
    if devices == 1:
        return function(shared, rows)
    count = jax.tree.leaves(rows)[0].shape[0]
    even = count - count % devices
    parts = [_shares(function)(shared, jax.tree.map(lambda values: values[:even], rows))] if even else []
    if even < count:  # fewer rows than devices are left: all of them compute these
        parts.append(function(shared, jax.tree.map(lambda values: values[even:], rows)))
    return jax.tree.map(lambda *several: sum(several[1:], start=several[0]), *parts)


def _devices() -> int:
    return dict(jax.sharding.get_abstract_mesh().shape).get(AXIS, 1)


def _shares(function: Callable[[Shared, Rows], Sums]) -> Callable[[Shared, Rows], Sums]:
    def share(shared: Shared, rows: Rows) -> Sums:
        return jax.tree.map(lambda values: values[None], function(shared, rows))

    spread = jax.shard_map(share, in_specs=(Spec(), Spec(AXIS)), out_specs=Spec(AXIS), check_vma=False)
    return lambda shared, rows: jax.tree.map(lambda values: values.sum(axis=0), spread(shared, rows))
