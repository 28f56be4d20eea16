"""Data of the package nonlinear_benchmarks, which `Series` takes as they are: objects with u, y and sampling_time.

The package is not imported: any object with these attributes will do.
"""

import numbers
from typing import Any, Protocol, TypeGuard, runtime_checkable

from revarb.errors import InputError, check_integer

WINDOW_LENGTH = "state_initialization_window_length"  # first samples of a test part from which a run may start


@runtime_checkable
class BenchmarkData(Protocol):
    """Inputs, outputs and their sampling interval in seconds, None where it is not known."""

    u: Any
    y: Any
    sampling_time: float | None


def is_benchmark_data(value: object) -> TypeGuard[BenchmarkData]:
    """Whether it has the attributes of these objects."""
    return isinstance(value, BenchmarkData) and isinstance(value.sampling_time, numbers.Real | None)


def unpack_benchmark(data: object, dt: float | None, first: bool = False) -> tuple[Any, Any, float | None]:
    """Inputs, outputs and sampling interval; of the samples from which a run may start, if only the first are wanted.

    An interval that is given must be that of the data.
    """
    if not is_benchmark_data(data):
        raise InputError(
            "y is missing: pass u and y, or an object of nonlinear_benchmarks, with u, y and sampling_time; received "
            f"a {type(data).__name__}"
        )
    interval = None if data.sampling_time is None else float(data.sampling_time)
    if interval is not None and dt is not None and dt != interval:
        raise InputError(f"dt is {dt!r}, but the sampling_time of the data is {interval:g}; leave dt out")
    length = getattr(data, WINDOW_LENGTH, None) if first else None
    rows = slice(None if length is None else check_integer(WINDOW_LENGTH, length, 1, len(data.y)))
    return data.u[rows], data.y[rows], dt if interval is None else interval
