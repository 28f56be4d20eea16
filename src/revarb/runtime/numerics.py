"""How the package computes, without touching how its caller does: float64, LAPACK on one thread, programs kept.

JAX computes in float32 unless told otherwise, and expanded squares (psi.py) need float64. And LAPACK, which factorises
the small matrices, would wait for threads of its own on cores that the large products already keep busy: on two cores
an evaluation of the bound then takes nearly twice as long, and longer when other work runs. (What does outlast a call
is the cache of compiled programs, compiled.py.) Every public door (`fit`,
`simulate`) is wrapped in `with_numerics`; what goes out through it are NumPy arrays, which carry their precision with
them.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax
import numpy as np
from threadpoolctl import ThreadpoolController

from revarb.runtime.compilation_cache import enable_compilation_cache

P = ParamSpec("P")


T = TypeVar("T")


AnyArray = jax.Array | np.ndarray
"""Numerics take both: NumPy arrays at the border, JAX arrays inside a compiled function."""


def with_numerics(function: Callable[P, T]) -> Callable[P, T]:
    """Run `function` with JAX's float64 switched on and one LAPACK thread, and only while it runs."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        enable_compilation_cache()
        with jax.enable_x64(True), _thread_pools().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return wrapped


@functools.cache
def _thread_pools() -> ThreadpoolController:
    # Finding the libraries that have threads takes a millisecond, too long for every step of a live run. Those that
    # matter (SciPy's LAPACK, which JAX calls) are there as soon as JAX is.
    return ThreadpoolController()
