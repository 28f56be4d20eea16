"""The host's own processor, for work that an accelerator delays: recursions and start values, on few numbers.

There every step of a recursion is a launch of its own, and every operation outside of a compiled function is a program
that has to be compiled.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from revarb.runtime.mesh import count_devices


@contextmanager
def on_host() -> Iterator[None]:
    """Compute on the host in this block; also a decorator. Nothing is changed on a CPU, and on a mesh of devices."""
    if jax.default_backend() == "cpu" or count_devices() > 1:
        yield
        return
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        yield
