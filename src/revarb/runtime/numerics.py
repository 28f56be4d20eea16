"""Precision and threads of the numerics: float64 and single-threaded LAPACK, without changing the caller's settings.

JAX computes in float32 by default, and the expanded squares of gp/psi.py need float64. LAPACK factorises the small
matrices; with threads of its own it competes with XLA for cores that the large products already use, and on two cores
an evaluation of the bound then takes nearly twice as long. Every public method that computes (`fit`, `simulate`) is
wrapped in `with_numerics` and returns NumPy arrays, which keep their precision. Only the compilation cache
(compilation.py) outlasts the call.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax
import numpy as np
from threadpoolctl import ThreadpoolController

from revarb.runtime.compilation import enable_compilation_cache, release_programs
from revarb.runtime.workers import check_fork

P = ParamSpec("P")
T = TypeVar("T")

AnyArray = jax.Array | np.ndarray  # NumPy arrays outside of compiled functions, JAX arrays inside


def with_numerics(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate `function` to run with JAX in float64 and one LAPACK thread; both are restored when it returns."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        check_fork()
        enable_compilation_cache()
        release_programs()
        with jax.enable_x64(True), _find_thread_pools().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return wrapped


@functools.cache
def _find_thread_pools() -> ThreadpoolController:
    # Finding the thread pools takes a millisecond, too long for every step of a live run. The one that matters (SciPy's
    # LAPACK, which JAX calls) is loaded as soon as JAX is.
    return ThreadpoolController()
