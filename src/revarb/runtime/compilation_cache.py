"""What was compiled once is kept in the user's cache folder: the second run of the same shapes compiles nothing.

JAX does the keeping, and has one cache per process: programs of the caller that are compiled after ours are kept there
too. A user who has told JAX where (`JAX_COMPILATION_CACHE_DIR`) or not to at all (`JAX_ENABLE_COMPILATION_CACHE=false`)
is left alone, and so is what he has set of the two numbers below.
"""

import functools
import hashlib
import os
import platform
from pathlib import Path

import jax
from platformdirs import user_cache_path

MAX_BYTES = 2**30  # the least recently used are removed beyond this; an entry takes a few hundred kB


MIN_COMPILE_SECONDS = 0.1  # of compilation: below, keeping is not worth a file


@functools.cache
def enable_compilation_cache() -> None:
    """Switch the persistent compilation cache on, once per process, unless the user has decided about it."""
    decided = jax.config.jax_compilation_cache_dir is not None  # pyright: ignore[reportAttributeAccessIssue]
    if decided or not jax.config.jax_enable_compilation_cache:  # pyright: ignore[reportAttributeAccessIssue]
        return
    folder = user_cache_path("revarb") / "compiled" / _processor()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # a home that cannot be written to is no reason not to compute
    if not os.access(folder, os.W_OK):
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    if jax.config.jax_compilation_cache_max_size == -1:  # pyright: ignore[reportAttributeAccessIssue]
        jax.config.update("jax_compilation_cache_max_size", MAX_BYTES)
    if jax.config.jax_persistent_cache_min_compile_time_secs == 1.0:  # pyright: ignore[reportAttributeAccessIssue]
        jax.config.update("jax_persistent_cache_min_compile_time_secs", MIN_COMPILE_SECONDS)


def _processor() -> str:
    # Machines that share a home folder may have processors with different instructions.
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux: homes are rarely shared
        lines = [platform.processor()]
    features = sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))} or lines)
    return hashlib.sha256("".join([platform.machine(), *features]).encode()).hexdigest()[:12]
