"""One step of the mean-only run in plain arrays: every export is written from it.

The state of a member is its joint state (the windows of all hidden layers, newest first; simulation/chain.py), and the
last inputs. The joint state is z-scored; inputs and outputs of a step are in raw units.

The state vector of a step model has the joint states of its members one after the other, then the last `past_inputs`
inputs in raw units, oldest first, row by row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float64, Int

from revarb.data.preprocessor import Preprocessor
from revarb.data.scaling import Standardiser
from revarb.data.windows import Order
from revarb.errors import InputError
from revarb.gp.posterior import Posterior
from revarb.simulation.chain import Chain, StartState, find_noise_variance, locate_windows
from revarb.simulation.extrapolation import KnownRange
from revarb.simulation.formulas import Formula, RadialBasis, describe_layer
from revarb.simulation.starts import Origin

ONE = np.ones((1, 1))
LARGE = 1e30  # in place of an end that is not known


class MemberParts(NamedTuple):
    """What an export needs of a trained model, or of one member of an ensemble."""

    kind: str  # its class, for messages
    preprocessor: Preprocessor
    chain: Chain  # with calibrated noise, as `simulate` runs it
    resolve_start: Callable[[Any], Origin]  # the `start` argument of `simulate`, "cold" among them
    # Factors on the standard deviations of a chain of GPs, by the step after a measured start and after a cold one; the
    # last ones hold for all later steps.
    widths: Float64[np.ndarray, "K #Dy"] = ONE
    cold_widths: Float64[np.ndarray, "K #Dy"] = ONE
    # Standard deviations of a model with a mean only, raw units, likewise.
    residual_std: Float64[np.ndarray, "K Dy"] | None = None
    cold_std: Float64[np.ndarray, "K Dy"] | None = None
    known_range: KnownRange | None = None  # None: bands do not widen beyond it

    @property
    def finite_range(self) -> KnownRange:
        """The ranges of states and inputs, in finite numbers also where an end is not known."""
        return jax.tree.map(lambda end: np.clip(end, -LARGE, LARGE), self.known_range)


@dataclass(frozen=True, eq=False)
class StepMember:
    """One chain of layers: the hidden layers 1 … H, then the output layer.

    Without an output layer the newest states of the last hidden layer are the outputs. Hidden layer h has its own
    window before the step as regressors, followed by the window of the layer below after the step; the first one has
    the window of inputs instead. The output layer has the window of the last hidden layer after the step.
    """

    scaling: Standardiser
    order: Order
    hidden: tuple[Formula, ...]
    output: Formula | None
    cold: StartState

    @property
    def lags(self) -> int:
        """Number of states in each window."""
        return self.order.lags

    @property
    def latent_dims(self) -> tuple[int, ...]:
        """Number of latent states of each hidden layer."""
        return tuple(layer.outputs for layer in self.hidden)

    @property
    def windows(self) -> list[Any]:
        """Positions of the window of each hidden layer in the joint state, newest states first."""
        return locate_windows(self)

    @property
    def states(self) -> int:
        """Size of the joint state."""
        return self.lags * sum(self.latent_dims)


@dataclass(frozen=True, eq=False)
class StepModel:
    """A trained model as a step: one member, or those of an ensemble, whose outputs are averaged.

    `past_inputs` inputs are kept, oldest first; a member uses the last `order.reach` of them.
    """

    members: tuple[StepMember, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    dt: float

    @property
    def past_inputs(self) -> int:
        """Number of inputs before the step that are kept."""
        return max(member.order.reach for member in self.members)

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return len(self.input_names)

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return len(self.output_names)

    @property
    def states(self) -> int:
        """Size of the joint states of all members together."""
        return sum(member.states for member in self.members)

    @property
    def state_size(self) -> int:
        """Size of the state vector."""
        return self.states + self.past_inputs * self.inputs

    def locate_members(self) -> list[slice]:
        """Positions of each member's joint state in the state vector."""
        ends = np.cumsum([member.states for member in self.members]).tolist()
        return [slice(end - member.states, end) for end, member in zip(ends, self.members, strict=True)]

    def locate_inputs(self, member: StepMember) -> Int[np.ndarray, " D"]:
        """Positions of a member's window of inputs in the past inputs followed by those of the step, newest first."""
        order = member.order
        rows = self.past_inputs - order.input_delay - np.arange(order.input_lags)
        return (rows[:, None] * self.inputs + np.arange(self.inputs)).ravel()

    def make_cold_state(self) -> Float64[np.ndarray, " S"]:
        """The state vector of a cold start: typical states, past inputs at their training mean."""
        past_u = np.tile(self.members[0].scaling.u_mean, self.past_inputs)  # members have the same records
        return np.concatenate([*(np.asarray(member.cold.mean) for member in self.members), past_u])


def make_step_model(parts: Sequence[MemberParts]) -> StepModel:
    """The step of a model."""
    prep = parts[0].preprocessor  # members have the same columns
    members = tuple(map(_make_member, parts))
    return StepModel(members, prep.input_names, prep.output_names, prep.dt)


def _make_member(part: MemberParts) -> StepMember:
    prep, chain, cold = part.preprocessor, part.chain, part.resolve_start("cold").state
    output = None if chain.output is None else describe_layer(chain.output)
    return StepMember(prep.scaling, prep.order, tuple(map(describe_layer, chain.hidden)), output, cold)


def make_start_vector(parts: Sequence[MemberParts], start: Any) -> Float64[np.ndarray, " S"]:
    """The state vector of a start; see `Exportable.step_state`."""
    own_starts = _split_start(start, len(parts))
    states = [part.resolve_start(own).state for part, own in zip(parts, own_starts, strict=True)]
    longest = max(states, key=lambda state: len(state.past_u))
    scaling = parts[0].preprocessor.scaling
    past_u = np.asarray(longest.past_u) * scaling.u_std + scaling.u_mean
    return np.concatenate([*(np.asarray(state.mean, dtype=np.float64) for state in states), past_u.ravel()])


def _split_start(start: Any, members: int) -> list[Any]:
    # A state belongs to one model: an ensemble takes one for each member.
    if isinstance(start, list | tuple):
        if len(start) != members:
            raise InputError(f"start has {len(start)} state(s), but the model {members} member(s); pass one for each")
        return list(start)
    if isinstance(start, StartState) and members > 1:
        raise InputError(f"start is one state, but the model has {members} members; pass one of its final_states")
    return [start] * members


class GaussianLayer(NamedTuple):
    """A GP layer of a chain: its function, its variance, and where the values of the layer below are.

    The values of the layer below are the regressors first … first + below; those of the first layer are known.
    """

    formula: RadialBasis
    reductions: Float64[np.ndarray, "K M M"]  # G of Eq. 24 times variance²; one for all outputs, or one per output
    noise: float
    first: int
    below: int


def list_gaussian_layers(part: MemberParts) -> tuple[GaussianLayer, ...]:
    """The layers of a chain of GPs, the hidden ones first; a model with a mean only is refused."""
    chain = part.chain
    if not all(isinstance(layer, Posterior) for layer in (*chain.hidden, chain.last_layer)):
        raise InputError(f"a {part.kind} has no variance of its own; leave with_std out, or take an RGP or a GP-NARX")
    layers, below = [], 0
    for layer in (*chain.hidden, *(() if chain.output is None else (chain.output,))):
        formula = describe_layer(layer)
        assert isinstance(formula, RadialBasis)  # the formula of a posterior
        reduction = formula.variance**2 * np.asarray(layer.reduction, dtype=np.float64)
        noise = float(find_noise_variance(chain) if layer is chain.last_layer else layer.sigma2)
        first = 0 if layer is chain.output else chain.lags * formula.outputs
        layers.append(GaussianLayer(formula, reduction.reshape(-1, *reduction.shape[-2:]), noise, first, below))
        below = formula.outputs
    return tuple(layers)
