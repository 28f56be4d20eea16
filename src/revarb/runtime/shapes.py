"""Numbers of rows rounded up to a few sizes, so that records of nearby length share compiled programs.

XLA compiles a program for every shape, which takes seconds. Rows are appended until their number is one of the sizes
m · 2^k, m = 8 … 15, and the results of the appended rows are cut off.
"""

from functools import partial
from typing import TypeVar

import jax
import numpy as np
from jaxtyping import Num

from revarb.runtime.numerics import AnyArray

LONGEST = 2**14  # rows beyond which nothing is appended: a run then takes longer than its compilation

Tree = TypeVar("Tree")


def round_up_rows(rows: int) -> int:
    """The next size, less than an eighth larger; all numbers up to 16 are sizes."""
    if rows > LONGEST:
        return rows
    step = 1 << max(0, (rows - 1).bit_length() - 4)
    return -(-rows // step) * step


def pad_rows(values: Num[AnyArray, "T *D"], fill: float = 0.0) -> Num[np.ndarray, "P *D"]:
    """Append rows of `fill` up to the next size."""
    missing = round_up_rows(len(values)) - len(values)
    return np.pad(values, ((0, missing), *((0, 0),) * (values.ndim - 1)), constant_values=fill)


@partial(jax.jit, static_argnames=("rows", "axis"))
def cut_rows(results: Tree, rows: int, axis: int = 0) -> Tree:
    """Cut off the results of appended rows."""
    return jax.tree.map(lambda values: jax.lax.slice_in_dim(values, 0, rows, axis=axis), results)
