"""Persistent compilation cache: a second run with the same shapes compiles nothing.

JAX has one cache per process, so programs of the caller that are compiled after ours are stored there too. The user's
own settings are respected: `JAX_COMPILATION_CACHE_DIR`, `JAX_ENABLE_COMPILATION_CACHE=false`, and JAX's options for the
size of the cache and for the shortest compilation to store.
"""

import functools
import hashlib
import os
import platform
from pathlib import Path

import jax
from platformdirs import user_cache_path

MAX_BYTES = 2**30  # beyond this, least recently used entries are removed; an entry takes a few hundred kB
MIN_COMPILE_SECONDS = 0.1  # programs that compile faster are not worth a file


@functools.cache
def enable_compilation_cache() -> None:
    """Enable JAX's persistent compilation cache, once per process, unless the user has configured it."""
    configured = jax.config.jax_compilation_cache_dir is not None  # pyright: ignore[reportAttributeAccessIssue]
    if configured or not jax.config.jax_enable_compilation_cache:  # pyright: ignore[reportAttributeAccessIssue]
        return
    folder = user_cache_path("revarb") / "compiled" / _identify_processor()
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


def _identify_processor() -> str:
    # Machines that share a home folder may have processors with different instruction sets.
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux, where home folders are rarely shared
        lines = [platform.processor()]
    features = sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))} or lines)
    return hashlib.sha256("".join([platform.machine(), *features]).encode()).hexdigest()[:12]
