"""What a run owes to leaving what is known, and the band that is wider by it (docs/theory/derivation.md, Eq. 36e).

Beside the mean-only run goes one that is held inside: its states and inputs never leave the ranges of the training
records and of what was measured before the run. Where nothing leaves, both are the same. Beyond, the truth may be
anything between "nothing more happens" and "twice as much happens"; the distance of the two runs has the dynamics of
the model, so that it grows and decays as the system would.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64

from revarb.data.preprocessor import MARGIN, Preprocessor, ValueRange, check_finite
from revarb.data.trajectory import Trajectory
from revarb.data.windows import input_windows_after
from revarb.runtime.numerics import AnyArray, cut_rows, pad_rows
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.mean import advance_mean

DOUBT = 0.5  # standard deviation, as a share of the distance: the 95 % band reaches from none of it to twice as much
LEAST_WIDTH = 0.1  # of the range of a state, z-scored: leaving a smaller one says nothing


class KnownRange(NamedTuple):
    """The ranges of the joint state (simulation/chain.py) and of the inputs, z-scored."""

    states: ValueRange
    inputs: ValueRange

    def include(self, start: StartState) -> "KnownRange":
        """The ranges with what was measured before a run: its first states and past inputs."""
        past = np.concatenate([np.asarray(start.past_u), np.zeros((1, len(self.inputs.low)))])  # zero is inside
        return KnownRange(_join(self.states, start.mean, start.mean), _join(self.inputs, past.min(0), past.max(0)))


def _join(known: ValueRange, low: AnyArray, high: AnyArray) -> ValueRange:
    return ValueRange(np.minimum(known.low, low), np.maximum(known.high, high))


def find_known_range(prep: Preprocessor, states: Sequence[Float64[np.ndarray, "N _"]]) -> KnownRange:
    """The ranges of the states of every hidden layer in training, and of the inputs where a model file has them."""
    low, high = (np.concatenate([np.tile(end(x, axis=0), prep.order.lags) for x in states]) for end in (np.min, np.max))
    ends = [np.full((1, len(prep.input_names)), end) for end in (-np.inf, np.inf)]
    if prep.input_range is not None:
        ends = [prep.scaling.inputs(end[None]) for end in prep.input_range]
    return KnownRange(ValueRange(low, high), ValueRange(ends[0][0], ends[1][0]))


class Extrapolation(NamedTuple):
    """Distance of the outputs from the run that is held inside; of the states from their ranges, in widths of these."""

    distance: Float[AnyArray, "T Dy"]
    excess: Float[AnyArray, " T"]


def run_extrapolation(
    chain: Chain, start: StartState, u_bar: Float[AnyArray, "T Du"], known: KnownRange
) -> Extrapolation:
    """Simulate the mean, and beside it the mean with states and inputs held inside."""
    found = _scan_extrapolation(chain, start, pad_rows(u_bar), known)
    return jax.tree.map(lambda rows: np.asarray(cut_rows(rows, len(u_bar))), found)


@jax.jit
def _scan_extrapolation(
    chain: Chain, start: StartState, u_bar: Float[AnyArray, "T Du"], known: KnownRange
) -> Extrapolation:
    lags = u_bar.shape[1] // max(len(known.inputs.low), 1)
    low, high = known.states
    width = jnp.where(jnp.isfinite(high - low), jnp.maximum(high - low, LEAST_WIDTH), 1.0)

    def step(states, inputs_now):
        free, held = states
        free, y = advance_mean(chain, free, inputs_now)
        inside = jnp.clip(inputs_now, *(jnp.tile(end, lags) for end in known.inputs))
        held, y_held = advance_mean(chain, jnp.clip(held, low, high), inside)
        return (free, held), Extrapolation(y - y_held, jnp.max(jnp.maximum(low - free, free - high) / width))

    return jax.lax.scan(step, (start.mean, start.mean), u_bar)[1]


def widen_beyond(
    path: Trajectory, prep: Preprocessor, chain: Chain, start: StartState, known: KnownRange, seed: int = 0
) -> Trajectory:
    """A run with marks where its states leave their ranges, and with the band that is wider beyond."""
    raw = np.empty((len(path), 0)) if path.inputs is None else path.inputs
    u_bar = input_windows_after(np.asarray(start.past_u), prep.scaling.inputs(raw), prep.order)
    found = run_extrapolation(chain, start, u_bar, known.include(start))
    path = replace(path, state_extrapolates=found.excess > MARGIN)
    if path.std is None:
        return path
    doubt = DOUBT * prep.scaling.raw_std(found.distance)
    std, samples = np.hypot(path.std, doubt), path.samples
    if samples is not None:  # one draw for the whole of a trajectory
        samples = samples + np.random.default_rng(seed).standard_normal((len(samples), 1, 1)) * doubt
    check_finite(path.method, std, samples)
    return replace(path, std=std, samples=samples)
