"""Operating points: the equilibrium of a model's mean-only run at constant inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Float64

from revarb.data.scaling import Standardiser
from revarb.data.windows import Order
from revarb.errors import InputError, check_number, describe
from revarb.models.base import Fitted
from revarb.models.ensemble import Ensemble
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, StartState, locate_windows
from revarb.simulation.mean import advance_mean

STEPS = 20_000  # after which a run that still moves is said not to come to rest
REST = 1e-9  # largest change in a step of a run at rest, z-scored
NEAR = 1e-3  # distance from the end of such a run to its equilibrium, z-scored
PUSH = 1e-3  # of all states at the start, so that the run leaves an equilibrium that is not stable
FAR = 1e6  # z-scores at which a run has diverged
ITERATIONS = 30  # of Newton's method
RESIDUAL = 1e-10  # largest one at a root, z-scored
APPROACH = 0.95  # a slow run has come nearer by this factor at least in its second half


class ChainModel(NamedTuple):
    """A trained chain with what it needs to take and to give raw values: a model, or a member of an ensemble."""

    chain: Chain
    scaling: Standardiser
    order: Order


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """Constant inputs, and the equilibrium that a run with them comes to, raw units.

    Attributes
    ----------
    inputs : array [inputs]
        The inputs.
    outputs : array [outputs]
        The outputs at rest.
    states : tuple of StartState
        The state at rest of every member of an ensemble; one of any other model.
    input_names : tuple of str
        Names of the inputs.
    """

    inputs: Float64[np.ndarray, " Du"]
    outputs: Float64[np.ndarray, " Dy"]
    states: tuple[StartState, ...]
    input_names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"OperatingPoint({self}, outputs {self.outputs.round(6).tolist()})"

    def __str__(self) -> str:
        return describe_inputs(self.input_names, self.inputs)


class Equilibria(NamedTuple):
    """What a chain does at N constant inputs, z-scored: its states, outputs and static gains at rest.

    Where a run does not come to rest `found` is false, and the values have no meaning. `diverged` says why.
    """

    states: Float64[np.ndarray, "N S"]
    outputs: Float64[np.ndarray, "N Dy"]
    gains: Float64[np.ndarray, "N Dy Du"]
    found: Bool[np.ndarray, " N"]
    diverged: Bool[np.ndarray, " N"]


def list_chains(model: Fitted) -> tuple[ChainModel, ...]:
    """The chains of a model; one without a chain or without inputs is refused in a line."""
    parts = model.members if isinstance(model, Ensemble) else (model,)
    chains: list[Any] = [getattr(part, "chain", None) for part in parts]
    if any(chain is None for chain in chains):
        raise InputError(
            f"a {type(model).__name__} has no state to linearise; an RGP, an ensemble, ARX, GP-NARX and MLP-NARX have"
        )
    if not model.input_names:
        raise InputError("the model has no inputs, so it has no response to one; simulate it with steps=")
    return tuple(ChainModel(chain, part.scaling, part.order) for chain, part in zip(chains, parts, strict=True))


def read_inputs(model: Fitted, at: Any) -> Float64[np.ndarray, " Du"]:
    """The constant inputs that `at` stands for; by default, and where a mapping has no value, their training means."""
    names, means = model.input_names, np.asarray(model.scaling.u_mean, dtype=np.float64)
    if at is None:
        return means.copy()
    if isinstance(at, Mapping):
        unknown = [name for name in at if name not in names]
        if unknown:
            raise InputError(f"at has no value for an input of the model, but for {unknown[0]!r}; there are {names}")
        given = {name: check_number(f"at[{name!r}]", value) for name, value in at.items()}
        return np.array([given.get(name, mean) for name, mean in zip(names, means, strict=True)])
    try:
        values = np.atleast_1d(np.asarray(at, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != means.shape or not np.isfinite(values).all():
        raise InputError(f"at must be a finite value for each of the inputs {list(names)}, received {describe(at)}")
    return values


def find_column(model: Fitted, name: str | None) -> int:
    """The number of the input with this name; without a name the only one that there is."""
    names = model.input_names
    if name is None and len(names) == 1:
        return 0
    if name not in names:
        received = "none was named" if name is None else f"received {describe(name)}"
        raise InputError(f"say which input: input= one of {list(names)}; {received}")
    return names.index(name)


def find_operating_point(model: Fitted, at: Any = None) -> OperatingPoint:
    """Find the equilibrium at constant inputs; where the run does not come to rest it is refused in a line."""
    chains, u = list_chains(model), read_inputs(model, at)
    found = [find_equilibria(each, u[None]) for each in chains]
    for each in found:
        if not each.found[0]:
            raise InputError(_describe_unrest(model, u, bool(each.diverged[0])))
    outputs = [each.scaling.raw_outputs(rest.outputs[0]) for each, rest in zip(chains, found, strict=True)]
    states = tuple(_make_state(each, rest.states[0], u) for each, rest in zip(chains, found, strict=True))
    return OperatingPoint(u, np.mean(outputs, axis=0), states, model.input_names)


def describe_inputs(names: Sequence[str], values: Float64[np.ndarray, " Du"]) -> str:
    """Constant inputs as a message and a title have them."""
    return ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, values, strict=True))


def _describe_unrest(model: Fitted, u: Float64[np.ndarray, " Du"], diverged: bool) -> str:
    where = describe_inputs(model.input_names, u)
    what = "diverges" if diverged else f"does not come to rest in {STEPS} steps: it oscillates or drifts"
    return f"no stable equilibrium at {where}: the run {what}; choose another operating point, or check the model"


def _make_state(part: ChainModel, mean: Float64[np.ndarray, " S"], u: Float64[np.ndarray, " Du"]) -> StartState:
    # Known exactly, after a long time at these inputs.
    return StartState(
        mean, np.zeros((len(mean), len(mean))), np.tile(part.scaling.inputs(u[None]), (part.order.reach, 1))
    )


def find_equilibria(part: ChainModel, u: Float64[np.ndarray, "N Du"]) -> Equilibria:
    """Run to rest at every row of raw inputs, then solve for the equilibrium by Newton's method."""
    chain, order, z = part.chain, part.order, part.scaling.inputs(u)
    u_bar = np.tile(z, (1, order.input_lags))
    size = chain.lags * sum(chain.latent_dims)
    half, _ = _run(chain, np.full((len(z), size), PUSH), u_bar)
    end, change = _run(chain, half, u_bar)
    solved = jax.tree.map(np.asarray, _solve(chain, _newest(chain, end), z, order.input_lags))
    states, outputs, gains, residual = solved
    half, end, change = (np.asarray(values) for values in (half, end, change))
    diverged = ~np.asarray((np.abs(end) < FAR).all(axis=1))  # also where it is not a number
    with np.errstate(invalid="ignore"):
        root = np.isfinite(states).all(axis=1) & (residual < RESIDUAL)
        distance, before = (np.abs(values - states).max(axis=1) for values in (end, half))
        at_rest = (change < REST) & (distance < NEAR)
        approaching = distance < APPROACH * before
    slow = root & ~diverged & ~at_rest & approaching
    slow[slow] = [_is_stable(chain, state, now) for state, now in zip(states[slow], u_bar[slow], strict=True)]
    return Equilibria(states, outputs, gains, root & ~diverged & (at_rest | slow), diverged)


@jax.jit
def _run(
    chain: Chain, start: Float[AnyArray, "N S"], u_bar: Float[AnyArray, "N D"]
) -> tuple[Float[AnyArray, "N S"], Float[AnyArray, " N"]]:
    # States after half of the steps, or when all runs are at rest, and their last change.
    advance = jax.vmap(lambda state, now: advance_mean(chain, state, now)[0])

    def is_moving(carry):
        step, _, change = carry
        return (step < STEPS // 2) & jnp.any(change > REST)

    def move(carry):
        step, state, _ = carry
        moved = advance(state, u_bar)
        return step + 1, moved, jnp.max(jnp.abs(moved - state), axis=1)

    return jax.lax.while_loop(is_moving, move, (0, start, jnp.full(len(start), jnp.inf)))[1:]


def _newest(chain: Chain, states: Float[AnyArray, "N S"]) -> Float[AnyArray, "N V"]:
    # The newest value of every latent state: at rest its whole window has this value.
    windows = zip(locate_windows(chain), chain.latent_dims, strict=True)
    return states[:, np.concatenate([window[:dim] for window, dim in windows])]


def _fill_windows(chain: Chain, values: Float[AnyArray, " V"]) -> Float[AnyArray, " S"]:
    parts = jnp.split(values, np.cumsum(chain.latent_dims)[:-1])
    return jnp.concatenate([jnp.tile(part, chain.lags) for part in parts])


@partial(jax.jit, static_argnames="input_lags")
def _solve(
    chain: Chain, start: Float[AnyArray, "N V"], z: Float[AnyArray, "N Du"], input_lags: int
) -> tuple[Float[AnyArray, "N S"], Float[AnyArray, "N Dy"], Float[AnyArray, "N Dy Du"], Float[AnyArray, " N"]]:
    return jax.vmap(lambda own_start, own_z: _solve_one(chain, own_start, own_z, input_lags))(start, z)


def _solve_one(
    chain: Chain, start: Float[AnyArray, " V"], z: Float[AnyArray, " Du"], input_lags: int
) -> tuple[Float[AnyArray, " S"], Float[AnyArray, " Dy"], Float[AnyArray, "Dy Du"], Float[AnyArray, ""]]:
    # States, outputs, static gains and residual of the equilibrium near `start`.
    def step(values, inputs):
        state, y = advance_mean(chain, _fill_windows(chain, values), jnp.tile(inputs, input_lags))
        return _newest(chain, state[None])[0] - values, y

    def improve(_, values):
        slope = jax.jacfwd(lambda each: step(each, z)[0])(values)
        return values - jnp.linalg.solve(slope, step(values, z)[0])

    values = jax.lax.fori_loop(0, ITERATIONS, improve, start)
    residual, y = step(values, z)
    (by_values, by_inputs), (y_by_values, y_by_inputs) = jax.jacfwd(step, argnums=(0, 1))(values, z)
    gains = y_by_inputs - y_by_values @ jnp.linalg.solve(by_values, by_inputs)  # implicit function theorem
    return _fill_windows(chain, values), y, gains, jnp.max(jnp.abs(residual))


def _is_stable(chain: Chain, state: Float64[np.ndarray, " S"], now: Float64[np.ndarray, " D"]) -> bool:
    jacobian = np.asarray(jax.jacfwd(lambda each: advance_mean(chain, each, now)[0])(jnp.asarray(state)))
    return bool(np.abs(np.linalg.eigvals(jacobian)).max() < 1.0)
