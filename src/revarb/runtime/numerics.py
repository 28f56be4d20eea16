"""How this process computes: in float64, with one LAPACK thread, and with compiled programs that are kept.

JAX computes in float32 by default, and the expanded squares of gp/psi.py need float64. LAPACK factorises the small
matrices; with threads of its own it competes with XLA for cores that the large products already use, and on two cores
an evaluation of the bound then takes nearly twice as long. Every public method that computes (`fit`, `simulate`) is
wrapped in `with_numerics` and returns NumPy arrays, which keep their precision.

XLA compiles a program for every shape, which takes seconds.

- A persistent cache: a second run with the same shapes compiles nothing. It outlasts the call: JAX has one cache per
  process, so programs of the caller that are compiled after ours are stored there too. The user's own settings are
  respected: `JAX_COMPILATION_CACHE_DIR`, `JAX_ENABLE_COMPILATION_CACHE=false`, and JAX's options for the size of the
  cache and for the shortest compilation to store.
- Padded rows: rows are appended until their number is one of the sizes m · 2^k, m = 8 … 15, and the results of the
  appended rows are cut off. Moments of runs are computed by a program of 32 rows, called as often as needed.
- Release: a program takes dozens of memory mappings. Linux allows a process 65530 of them (vm.max_map_count), and XLA
  ends with a segmentation fault when there are no more. A process that fits records of many shapes gets there: a sweep
  over records and orders, a long session in a notebook.
"""

import functools
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

import jax
import numpy as np
from jaxtyping import Num
from platformdirs import user_cache_path
from threadpoolctl import ThreadpoolController

from revarb.errors import InputError
from revarb.runtime.machine import identify_processor

MAX_BYTES = 2**30  # beyond this, least recently used entries are removed; an entry takes a few hundred kB
MIN_COMPILE_SECONDS = 0.1  # programs that compile faster are not worth a file

LONGEST = 2**14  # rows beyond which nothing is appended: a run then takes longer than its compilation

MAPPINGS = Path("/proc/self/maps")  # a line each; other systems than Linux have no such limit
LIMIT = Path("/proc/sys/vm/max_map_count")
SHARE = 0.5  # of the limit that programs may take; one fit adds a few thousand mappings
CHECK_SECONDS = 10.0  # counting takes milliseconds, too long for every step of a live run

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")
Tree = TypeVar("Tree")

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


def map_in_threads(function: Callable[[Item], T], items: Iterable[Item], workers: int | None = None) -> list[T]:
    """Call a function that computes for every item, in threads: XLA compiles and runs without Python's lock.

    The caller is wrapped in `with_numerics`: the number of LAPACK threads is a setting of the process, which must not
    be restored while another thread still computes. By default there are a few more threads than cores, which share
    these evenly.
    """
    device = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue] (a setting of the thread)

    def call(item: Item) -> T:
        with jax.enable_x64(True), jax.default_device(device):  # likewise
            return function(item)

    with ThreadPoolExecutor(max_workers=workers) as pool:
        return list(pool.map(call, items))


@functools.cache
def _find_thread_pools() -> ThreadpoolController:
    # Finding the thread pools takes a millisecond, too long for every step of a live run. The one that matters (SciPy's
    # LAPACK, which JAX calls) is loaded as soon as JAX is.
    return ThreadpoolController()


_started = False  # whether this process, or the one it was forked from, has computed
_forked = False


def check_fork() -> None:
    """Refuse to compute in a process that was forked from one that has computed, where JAX would hang silently."""
    global _started
    if _forked:
        raise InputError(
            "this process was forked after JAX had started, and JAX would hang in it; start processes with "
            "multiprocessing.get_context('spawn') or joblib, or use jobs="
        )
    _started = True


def _mark_child() -> None:
    global _forked
    _forked = _started


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_mark_child)


@functools.cache
def enable_compilation_cache() -> None:
    """Enable JAX's persistent compilation cache, once per process, unless the user has configured it."""
    configured = jax.config.jax_compilation_cache_dir is not None  # pyright: ignore[reportAttributeAccessIssue]
    if configured or not jax.config.jax_enable_compilation_cache:  # pyright: ignore[reportAttributeAccessIssue]
        return
    # Machines that share a home folder may have processors with different instruction sets.
    folder = user_cache_path("revarb") / "compiled" / identify_processor()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # the cache is optional: without a writable home folder everything is compiled again
    if not os.access(folder, os.W_OK):
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    if jax.config.jax_compilation_cache_max_size == -1:  # pyright: ignore[reportAttributeAccessIssue]
        jax.config.update("jax_compilation_cache_max_size", MAX_BYTES)
    if jax.config.jax_persistent_cache_min_compile_time_secs == 1.0:  # pyright: ignore[reportAttributeAccessIssue]
        jax.config.update("jax_persistent_cache_min_compile_time_secs", MIN_COMPILE_SECONDS)


def round_up_rows(rows: int) -> int:
    """The next size, less than an eighth larger; all numbers up to 16 are sizes."""
    if rows > LONGEST:
        return rows
    step = 1 << max(0, (rows - 1).bit_length() - 4)
    return -(-rows // step) * step


def pad_rows(values: Num[jax.Array | np.ndarray, "T *D"], fill: float = 0.0) -> Num[np.ndarray, "P *D"]:
    """Append rows of `fill` up to the next size."""
    missing = round_up_rows(len(values)) - len(values)
    return np.pad(values, ((0, missing), *((0, 0),) * (values.ndim - 1)), constant_values=fill)


@partial(jax.jit, static_argnames=("rows", "axis"))
def cut_rows(results: Tree, rows: int, axis: int = 0) -> Tree:
    """Cut off the results of appended rows."""
    return jax.tree.map(lambda values: jax.lax.slice_in_dim(values, 0, rows, axis=axis), results)


_last_check = float("-inf")


def release_programs() -> None:
    """Release all compiled programs if the process has too many mappings; what is needed again is compiled again.

    The mappings are counted at most once in ten seconds.
    """
    global _last_check
    now = time.monotonic()
    if now - _last_check < CHECK_SECONDS:
        return
    _last_check = now
    try:
        with MAPPINGS.open("rb") as file:
            mappings = sum(1 for _ in file)
        limit = float(LIMIT.read_text())
    except (OSError, ValueError):  # not Linux
        return
    if mappings > SHARE * limit:
        jax.clear_caches()
