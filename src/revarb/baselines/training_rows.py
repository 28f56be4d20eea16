"""What trainings of the baselines share: rows without gaps, delayed inputs, sub-sequences, and Adam on them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax
from jaxtyping import Bool, Float, Float64, Int

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series
from revarb.data.windows import Order, input_windows_after
from revarb.errors import InputError
from revarb.fitting.arx import NarxRows, build_narx_rows, mark_complete
from revarb.runtime.numerics import AnyArray

MIN_ROWS = 2  # as of the shortest record without gaps


def build_complete_rows(
    prep: Preprocessor, records: Sequence[Series], model: str
) -> tuple[NarxRows, Bool[np.ndarray, " R"]]:
    """Build the training rows that no gap touches, and mark which of all rows they are; refuse too few of them."""
    rows = build_narx_rows(prep, records)
    complete = mark_complete(rows)
    if (number := int(complete.sum())) < MIN_ROWS:
        raise InputError(
            f"{model} regresses on measured past outputs, and {number} of {len(complete)} training rows have all of "
            f"them measured, fewer than {MIN_ROWS}; use fewer lags, fill the gaps, or use RGP, which needs no such rows"
        )
    return NarxRows(rows.x_hat[complete], rows.y[complete]), complete


class DelayedRecords(NamedTuple):
    """Training records of a model without lags: one delayed input per step, and the outputs, z-scored."""

    records: tuple[Series, ...]
    prep: Preprocessor
    u_bars: list[Float64[np.ndarray, "_ Du"]]
    ys: list[Float64[np.ndarray, "_ Dy"]]

    @classmethod
    def from_records(cls, records: Sequence[Series], input_delay: int) -> "DelayedRecords":
        """Z-score the records and delay their inputs."""
        prep = Preprocessor.from_records(records, Order(0, 1 if records[0].input_names else 0, input_delay))
        u_bars = [delay_inputs(prep, prep.scaling.inputs(record.u)) for record in records]
        return cls(tuple(records), prep, u_bars, [prep.scaling.outputs(record.y) for record in records])


def delay_inputs(prep: Preprocessor, z: Float64[np.ndarray, "T Du"]) -> Float64[np.ndarray, "T Du"]:
    """One input per step, delayed by `input_delay`; inputs before the record are at their mean."""
    return input_windows_after(np.zeros((prep.order.reach, z.shape[1])), z, prep.order)


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
        ys: Sequence[Float64[np.ndarray, "_ Dy"]],
        heads: Sequence[int],
        length: int,
    ) -> "Subsequences":
        """Collect the sub-sequences of the first `heads[k]` samples of every record; none crosses a seam."""
        offsets = np.cumsum([0, *(len(y) for y in ys[:-1])])
        starts = [offset + np.arange(max(head - length + 1, 0)) for offset, head in zip(offsets, heads, strict=True)]
        return cls(np.concatenate(u_bars), np.concatenate(ys), np.concatenate(starts).astype(np.int32), length)


def cut_subsequences(values: AnyArray, starts: Int[AnyArray, " B"], length: int) -> AnyArray:
    """Cut the rows of sub-sequences out of stacked records, along a new first axis."""
    return jax.vmap(lambda start: jax.lax.dynamic_slice_in_dim(values, start, length))(starts)


Training = tuple[Any, optax.OptState]
"""Parameters, and the memory of Adam."""


def run_adam(
    rule: optax.GradientTransformation, loss: Callable[[Any, Any], AnyArray], start: Training, draws: AnyArray
) -> tuple[Training, Float[AnyArray, " K"]]:
    """Make one update for every draw of a stochastic loss; return also all its values."""

    def update(now: Training, draw: AnyArray) -> tuple[Training, AnyArray]:
        parameters, memory = now
        value, gradient = jax.value_and_grad(loss)(parameters, draw)
        changes, memory = rule.update(gradient, memory, parameters)
        return (eqx.apply_updates(parameters, changes), memory), value

    return jax.lax.scan(update, start, draws)
