"""What a run owes to leaving what is known, and the band that is wider by it (docs/theory/derivation.md, Eq. 36f).

Beside the mean-only run goes one that is held inside: its inputs and new states never leave their ranges in training,
nor go further out than the states before them, which were measured. Where nothing leaves, both are the same. Beyond,
the truth may be anything from "nothing more happens" to more than twice of what the model says; the distance of the
two runs has the dynamics of the model, so that it grows and decays as the system would.
"""

from collections.abc import Sequence
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
    """Distance of the outputs from the run that is held inside; of the states from their ranges, in widths of these."""

    distance: Float[AnyArray, "*T Dy"]
    excess: Float[AnyArray, "*T"]


def run_extrapolation(
    chain: Chain, apart: Float[AnyArray, "2 S"], u_bar: Float[AnyArray, "T Du"], known: KnownRange
) -> Extrapolation:
    """Simulate the mean-only run and the one that is held inside, from the states of both."""
    found = scan_extrapolation(chain, apart, pad_rows(u_bar), known)
    return jax.tree.map(lambda rows: np.asarray(cut_rows(rows, len(u_bar))), found)


@jax.jit
def scan_extrapolation(
    chain: Chain, apart: Float[AnyArray, "2 S"], u_bar: Float[AnyArray, "T Du"], known: KnownRange
) -> Extrapolation:
    """`run_extrapolation` without appended rows, for use in compiled functions."""
    return jax.lax.scan(lambda states, now: advance_apart(chain, states, now, known), apart, u_bar)[1]


def advance_apart(
    chain: Chain, apart: Float[AnyArray, "2 S"], inputs_now: Float[AnyArray, " Du"], known: KnownRange
) -> tuple[Float[AnyArray, "2 S"], Extrapolation]:
    """Advance the mean-only run and the one that is held inside by one step."""
    free, y = advance_mean(chain, apart[0], inputs_now)
    held, y_held = advance_mean(chain, apart[1], jnp.clip(inputs_now, *known.inputs))
    held = jnp.clip(held, *_find_limits(chain, apart[1], known.states))
    low, high = known.states
    width = jnp.where(jnp.isfinite(high - low), jnp.maximum(high - low, LEAST_WIDTH), 1.0)
    excess = jnp.max(jnp.maximum(low - free, free - high) / width)
    return jnp.stack([free, held]), Extrapolation(y - y_held, excess)


def correct_apart(
    apart: Float[AnyArray, "2 S"], corrected: Float[AnyArray, " S"], y: Float[AnyArray, " Dy"]
) -> Float[AnyArray, "2 S"]:
    """Both runs go on from the corrected states, unless no output was measured."""
    return jnp.where(jnp.isnan(y).all(), apart, jnp.stack([corrected, corrected]))


def measure_doubt(distance: Float[AnyArray, "*T Dy"]) -> Float64[np.ndarray, "*T Dy"]:
    """The standard deviation by which outputs at this distance from those of the held run are uncertain."""
    return DOUBT * np.asarray(distance)


def _find_limits(
    chain: Chain, held: Float[AnyArray, " S"], known: ValueRange
) -> tuple[Float[AnyArray, " S"], Float[AnyArray, " S"]]:
    # Of the new states: those of training, or further out if the states in the window are.
    low, high = [], []
    for window, dim in zip(locate_windows(chain), chain.latent_dims, strict=True):
        before = jnp.reshape(held[window], (chain.lags, dim))
        newest = window[:dim]
        low.append(jnp.tile(jnp.minimum(known.low[newest], before.min(axis=0)), chain.lags))
        high.append(jnp.tile(jnp.maximum(known.high[newest], before.max(axis=0)), chain.lags))
    return jnp.concatenate(low), jnp.concatenate(high)
