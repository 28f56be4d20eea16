"""float64 for this package alone: the caller's own JAX code keeps the precision it had.

JAX computes in float32 unless told otherwise, and expanded squares (psi.py) need float64. Every public door
(`fit`, `simulate`) is wrapped in `in_float64`; what goes out through it are NumPy arrays, which carry their
precision with them.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax
import numpy as np

P = ParamSpec("P")
T = TypeVar("T")

AnyArray = jax.Array | np.ndarray
"""Numerics take both: NumPy arrays at the border, JAX arrays inside a compiled function."""


def in_float64(function: Callable[P, T]) -> Callable[P, T]:
    """Run `function` with JAX's float64 switched on, and only while it runs."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped
