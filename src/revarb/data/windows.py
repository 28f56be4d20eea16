"""Windows of lags: all time alignment (docs/theory/derivation.md, Eqs. 4 to 6).

Time runs from 0 inside a record. A record of N samples has R = N − `first_row` rows, one for every sample with a full
window behind it. It has latent states for those rows and for the L samples before the first of them (the initial
states): a block of L + R states. The blocks of several records are stacked, `lengths` has the length of each, and no
window crosses from one record to the next.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64, Shaped

from revarb.runtime.numerics import AnyArray


@dataclass(frozen=True)
class Order:
    """How far back a model looks: `lags` states, `input_lags` inputs, the newest of which is `input_delay` samples old.

    A system without inputs has `input_lags` 0.
    """

    lags: int
    input_lags: int
    input_delay: int

    @property
    def reach(self) -> int:
        """Age of the oldest input in a window."""
        return self.input_delay + self.input_lags - 1 if self.input_lags else 0

    @property
    def first_row(self) -> int:
        """The first sample with a full window of states and of inputs behind it."""
        return max(self.lags, self.reach)

    @property
    def skip(self) -> int:
        """Rows at the beginning of a record by which no model is judged: L + L_u, or with a dead time more.

        First the inputs' window must fill, then the states settle for L rows.
        """
        return self.lags + max(self.input_lags, self.reach)


def regressor_sizes(order: Order, latent_dims: Sequence[int], inputs: int) -> list[int]:
    """Number of regressors of the layers 1 … H+1."""
    below = [order.input_lags * inputs, *(order.lags * dim for dim in latent_dims)]
    own = [*(order.lags * dim for dim in latent_dims), 0]
    return [a + b for a, b in zip(own, below, strict=True)]


def input_windows(u: Float64[np.ndarray, "N Du"], order: Order) -> Float64[np.ndarray, "R D"]:
    """ū: the inputs [u_{i−delay}, …, u_{i−delay−L_u+1}] of every sample i ≥ reach."""
    stop = len(u) - order.input_delay
    newest = order.reach - order.input_delay
    shifted = [u[newest - age : stop - age] for age in range(order.input_lags)]
    return np.concatenate([np.empty((len(u) - order.reach, 0)), *shifted], axis=1)


def input_windows_after(
    past_u: Float64[AnyArray, "reach Du"], u: Float64[np.ndarray, "T Du"], order: Order
) -> Float64[np.ndarray, "T D"]:
    """ū of every sample of `u`, given the inputs before it (oldest first)."""
    return input_windows(np.concatenate([past_u, u]), order)


def past_windows(x: Float[AnyArray, "P Dx"], length: int) -> Float[AnyArray, "R D"]:
    """x̄_{i−1} = [x_{i−1}, …, x_{i−L}] for the rows i ≥ L of one block."""
    rows = x.shape[0] - length
    return _join([x[length - age : length - age + rows] for age in range(1, length + 1)], axis=1)


def current_windows(x: Float[AnyArray, "P Dx"], length: int) -> Float[AnyArray, "R D"]:
    """x̄_i = [x_i, …, x_{i−L+1}] for the rows i ≥ L of one block."""
    rows = x.shape[0] - length
    return _join([x[length - age : length - age + rows] for age in range(length)], axis=1)


def map_blocks(
    function: Callable[[Float[AnyArray, "P Dx"], int], Float[AnyArray, "Q D"]],
    x: Float[AnyArray, "S Dx"],
    length: int,
    lengths: Sequence[int],
) -> Float[AnyArray, "R D"]:
    """Apply a window function to every record's block of states, and stack the rows."""
    return _join([_map_run(function, part, length, size) for part, size in _split_runs(x, lengths)], axis=0)


def _map_run(
    function: Callable[[Float[AnyArray, "P Dx"], int], Float[AnyArray, "Q D"]],
    x: Float[AnyArray, "S Dx"],
    length: int,
    size: int,
) -> Float[AnyArray, "R D"]:
    if len(x) == size:
        return function(x, length)
    # One operation for all blocks of a length: the time to compile must not grow with their number.
    rows = jax.vmap(lambda block: function(block, length))(jnp.reshape(x, (-1, size, x.shape[1])))
    return jnp.reshape(rows, (-1, rows.shape[2]))


def _split_runs(x: Float[AnyArray, "S Dx"], lengths: Sequence[int]) -> list[tuple[Float[AnyArray, "_ Dx"], int]]:
    # The states of neighbouring blocks of the same length, and that length.
    runs = [(size, size * len(list(group))) for size, group in groupby(lengths)]
    ends = np.cumsum([states for _, states in runs]).tolist()
    return [(x[end - states : end], size) for end, (size, states) in zip(ends, runs, strict=True)]


def regressors(
    x: Sequence[Float[AnyArray, "S _"]], u_bar: Float[AnyArray, "R Du"], length: int, lengths: Sequence[int]
) -> list[Float[AnyArray, "R _"]]:
    """x̂ of the layers 1 … H+1, from the states of the H hidden layers and the input windows.

    Means and variances go through the same alignment; variances come without inputs, which are known.
    """
    past = [map_blocks(past_windows, layer, length, lengths) for layer in x]
    current = [map_blocks(current_windows, layer, length, lengths) for layer in x]
    sides = [u_bar, *current[:-1]]
    hidden = [_join([own, side], axis=1) for own, side in zip(past, sides, strict=True)]
    return [*hidden, current[-1]]


def initial_states(x: Float[AnyArray, "S Dx"], length: int, lengths: Sequence[int]) -> Float[AnyArray, "K L Dx"]:
    """The first L states of each of the K records."""
    return jnp.concatenate([
        jnp.reshape(part, (-1, size, x.shape[1]))[:, :length] for part, size in _split_runs(x, lengths)
    ])  # fmt: skip


def later_states(x: Float[AnyArray, "S Dx"], length: int, lengths: Sequence[int]) -> Float[AnyArray, "R Dx"]:
    """The states that the rows are about: every block without its first L."""
    return map_blocks(lambda block, skipped: block[skipped:], x, length, lengths)


def split_rows(rows: Shaped[AnyArray, "R ..."], length: int, lengths: Sequence[int]) -> list[Shaped[AnyArray, "_ ..."]]:
    """Stacked rows cut at the seams: one array per record, whose block has `length` more states than rows."""
    counts = [states - length for states in lengths]
    return [rows[end - count : end] for end, count in zip(np.cumsum(counts).tolist(), counts, strict=True)]


def _join(parts: Sequence[AnyArray], axis: int) -> AnyArray:
    # NumPy arrays by NumPy: outside of compiled functions every shape would be a program to compile.
    join = np.concatenate if all(isinstance(part, np.ndarray) for part in parts) else jnp.concatenate
    return join(parts, axis=axis)
