"""Random sub-sequences of the training records, for recurrent models that are trained by gradient descent."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float64, Int

from revarb.data.preprocessor import Preprocessor
from revarb.data.windows import input_windows_after
from revarb.runtime.numerics import AnyArray


class Subsequences(NamedTuple):
    """Stacked records, and the samples at which a training sub-sequence of `length` samples can start."""

    u_bar: Float64[np.ndarray, "N Du"]
    y: Float64[np.ndarray, "N Dy"]
    starts: Int[np.ndarray, " C"]
    length: int

    @classmethod
    def from_records(
        cls,
        u_bars: Sequence[Float64[np.ndarray, "_ Du"]],
        outputs: Sequence[Float64[np.ndarray, "_ Dy"]],
        heads: Sequence[int],
        length: int,
    ) -> "Subsequences":
        """Collect the sub-sequences of the first `heads[k]` samples of every record; none crosses a seam."""
        offsets = np.cumsum([0, *(len(y) for y in outputs[:-1])])
        starts = [offset + np.arange(max(head - length + 1, 0)) for offset, head in zip(offsets, heads, strict=True)]
        return cls(np.concatenate(u_bars), np.concatenate(outputs), np.concatenate(starts).astype(np.int32), length)


def cut_rows(values: AnyArray, starts: Int[AnyArray, " B"], length: int) -> AnyArray:
    """Cut the rows of sub-sequences out of stacked records, along a new first axis."""
    return jax.vmap(lambda start: jax.lax.dynamic_slice_in_dim(values, start, length))(starts)


def delay_inputs(prep: Preprocessor, z: Float64[np.ndarray, "T Du"]) -> Float64[np.ndarray, "T Du"]:
    """One input per step, delayed by `input_delay`; inputs before the record are at their mean."""
    return input_windows_after(np.zeros((prep.order.reach, z.shape[1])), z, prep.order)
