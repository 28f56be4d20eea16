"""What a run owes to leaving what is known, and the band that is wider by it (docs/theory/derivation.md, Eq. 36f).

Beside the mean-only run go two that are held inside: inputs and new states of one never fall below the lower ends of
their ranges in training, those of the other never rise above the upper ends, nor go further out than the states before
them, which were measured. Where nothing leaves, all three are the same. Beyond, the truth may be anything from "nothing
more happens" to more than twice of what the model says; the distances of the runs have the dynamics of the model, so
that they grow and decay as the system would. What was beyond one end does not cancel what was beyond the other.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64

from revarb.data.preprocessor import Preprocessor, ValueRange
from revarb.runtime.numerics import AnyArray, cut_rows, pad_rows
from revarb.simulation.chain import Chain, locate_windows
from revarb.simulation.mean import advance_mean

DOUBT = 0.75  # standard deviation of the outputs, as a share of the distance; settled on generated plants
LEAST_WIDTH = 0.1  # of the range of a state, z-scored: leaving a smaller one says nothing


class KnownRange(NamedTuple):
    """The ranges of the joint state (simulation/chain.py) and of the inputs of a step in training, z-scored."""

    states: ValueRange
    inputs: ValueRange


def find_known_range(prep: Preprocessor, states: Sequence[Float64[np.ndarray, "N _"]]) -> KnownRange:
    """The ranges of the states of every hidden layer in training, and of the inputs where a model file has them."""
    low, high = (np.concatenate([np.tile(end(x, axis=0), prep.order.lags) for x in states]) for end in (np.min, np.max))
    ends = [np.full((1, len(prep.input_names)), end) for end in (-np.inf, np.inf)]
    if prep.input_range is not None:
        ends = [prep.scaling.inputs(end[None]) for end in prep.input_range]
    inputs = ValueRange(*(np.tile(end[0], prep.order.input_lags) for end in ends))
    return KnownRange(ValueRange(low, high), inputs)


class Extrapolation(NamedTuple):
    """Distance of outputs from the runs that are held inside; of states from their ranges, in widths of these."""

    distance: Float[AnyArray, "*T Dy"]
    excess: Float[AnyArray, "*T"]


def run_extrapolation(
    chain: Chain, apart: Float[AnyArray, "3 S"], u_bar: Float[AnyArray, "T Du"], known: KnownRange
) -> Extrapolation:
    """Simulate the mean-only run and those that are held inside, from the states of all three."""
    found = scan_extrapolation(chain, apart, pad_rows(u_bar), known)
    return jax.tree.map(lambda rows: np.asarray(cut_rows(rows, len(u_bar))), found)


@jax.jit
def scan_extrapolation(
    chain: Chain, apart: Float[AnyArray, "3 S"], u_bar: Float[AnyArray, "T Du"], known: KnownRange
) -> Extrapolation:
    """`run_extrapolation` without appended rows, for use in compiled functions."""
    return jax.lax.scan(lambda states, now: advance_apart(chain, states, now, known), apart, u_bar)[1]


def advance_apart(
    chain: Chain, apart: Float[AnyArray, "3 S"], inputs_now: Float[AnyArray, " Du"], known: KnownRange
) -> tuple[Float[AnyArray, "3 S"], Extrapolation]:
    """Advance the mean-only run and those that are held inside by one step."""
    low, high = known.states
    inputs = [inputs_now, jnp.maximum(inputs_now, known.inputs.low), jnp.minimum(inputs_now, known.inputs.high)]
    (free, raised, lowered), y = jax.vmap(advance_mean, in_axes=(None, 0, 0))(chain, apart, jnp.stack(inputs))
    raised = jnp.maximum(raised, _spread_over_windows(chain, jnp.minimum, low, apart[1]))
    lowered = jnp.minimum(lowered, _spread_over_windows(chain, jnp.maximum, high, apart[2]))
    width = jnp.where(jnp.isfinite(high - low), jnp.maximum(high - low, LEAST_WIDTH), 1.0)
    excess = jnp.max(jnp.maximum(low - free, free - high) / width)
    return jnp.stack([free, raised, lowered]), Extrapolation(jnp.hypot(y[0] - y[1], y[0] - y[2]), excess)


def begin_apart(mean: Float[AnyArray, " S"]) -> Float[AnyArray, "3 S"]:
    """All runs at the same states."""
    return jnp.tile(jnp.asarray(mean), (3, 1))


def correct_apart(
    apart: Float[AnyArray, "3 S"], corrected: Float[AnyArray, " S"], y: Float[AnyArray, " Dy"]
) -> Float[AnyArray, "3 S"]:
    """All runs go on from the corrected states, unless no output was measured."""
    return jnp.where(jnp.isnan(y).all(), apart, begin_apart(corrected))


def measure_doubt(distance: Float[AnyArray, "*T Dy"]) -> Float64[np.ndarray, "*T Dy"]:
    """The standard deviation by which outputs at this distance from those of the held run are uncertain."""
    return DOUBT * np.asarray(distance)


def _spread_over_windows(
    chain: Chain, extreme: Callable[[AnyArray, AnyArray], AnyArray], end: Float[AnyArray, " S"],
    before: Float[AnyArray, " S"],
) -> Float[AnyArray, " S"]:  # fmt: skip
    # Limits of the new states: those of training, or further out if a state in the window before is.
    limits = []
    for window, dim in zip(locate_windows(chain), chain.latent_dims, strict=True):
        rows = jnp.reshape(before[window], (chain.lags, dim))
        limit = functools.reduce(extreme, rows, end[window[:dim]])
        limits.append(jnp.tile(limit, chain.lags))
    return jnp.concatenate(limits)
