"""What a run owes to leaving the training data, and the band that is wider by it (docs/theory/derivation.md, Eq. 36e).

Beside the mean-only run goes one that is held inside: its states and inputs never leave what training has shown. Where
nothing leaves, both are the same. Beyond, the truth may be anything between "nothing more happens" and "twice as much
happens"; the difference has the model's own dynamics, so that it grows and decays as the system would.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64

from revarb.runtime.numerics import AnyArray, cut_rows, pad_rows
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.mean import advance_mean

DOUBT = 0.5  # standard deviation, as a share of the difference: a 95 % band reaches from none of it to twice as much
LEAST_WIDTH = 0.1  # of such a range, z-scored: a state that hardly moved says nothing


class KnownRange(NamedTuple):
    """The ranges in training of the joint state (simulation/chain.py) and of the inputs of a step, z-scored."""

    state_low: Float64[np.ndarray, " S"]
    state_high: Float64[np.ndarray, " S"]
    input_low: Float64[np.ndarray, " Du"]
    input_high: Float64[np.ndarray, " Du"]


class Extrapolation(NamedTuple):
    """Distance of the outputs from the run that is held inside; of the states from their range, in its widths."""

    distance: Float[AnyArray, "T Dy"]
    excess: Float[AnyArray, " T"]


def run_extrapolation(
    chain: Chain, start: StartState, u_bar: Float[AnyArray, "T Du"], known: KnownRange
) -> Extrapolation:
    """Simulate the mean, and beside it the mean with states and inputs held inside."""
    return jax.tree.map(
        lambda rows: cut_rows(rows, len(u_bar)), _scan_extrapolation(chain, start, pad_rows(u_bar), known)
    )


@jax.jit
def _scan_extrapolation(
    chain: Chain, start: StartState, u_bar: Float[AnyArray, "T Du"], known: KnownRange
) -> Extrapolation:
    width = jnp.maximum(known.state_high - known.state_low, LEAST_WIDTH)

    def step(states, inputs_now):
        free, held = states
        free, y = advance_mean(chain, free, inputs_now)
        held, y_held = advance_mean(chain, hold_inside(held, known), jnp.clip(inputs_now, *known[2:]))
        excess = jnp.maximum(known.state_low - free, free - known.state_high) / width
        return (free, held), Extrapolation(y - y_held, jnp.max(excess))

    return jax.lax.scan(step, (start.mean, start.mean), u_bar)[1]


def hold_inside(state: Float[AnyArray, " S"], known: KnownRange) -> Float[AnyArray, " S"]:
    """The joint state with all values inside of their ranges."""
    return jnp.clip(state, known.state_low, known.state_high)
