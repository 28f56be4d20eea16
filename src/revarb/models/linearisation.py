"""Operating points of trained models, equilibria of the mean-only run, and linear state-space models near them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Bool, Complex128, Float, Float64

from revarb.data.preprocessor import Preprocessor
from revarb.data.windows import Order
from revarb.errors import ComputationError, InputError, check_number, describe, warn_user
from revarb.export.exportable import Exportable
from revarb.export.step_model import MemberParts
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, StartState, locate_windows
from revarb.simulation.mean import advance_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

    from revarb.models.prediction import Predictor

STEPS = 20_000  # after which a run that still moves does not come to rest
REST = 1e-9  # largest change in a step of a run at rest, z-scored
NEAR = 1e-3  # distance from the end of such a run to its equilibrium, z-scored
PUSH = 1e-3  # of all states at the start, so that the run leaves an equilibrium that is not stable
FAR = 1e6  # z-scores at which a run has diverged
ITERATIONS = 30  # of Newton's method
RESIDUAL = 1e-10  # largest one at a root, z-scored
APPROACH = 0.95  # a slow run has come nearer by this factor at least in its second half


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


def list_parts(model: "Predictor") -> tuple[MemberParts, ...]:
    """The parts of a model, or those of the members of an ensemble; a model without inputs is refused."""
    if not model.preprocessor.input_names:
        raise InputError("the model has no inputs, so it has no response to one; simulate it with steps=")
    assert isinstance(model, Exportable)  # as every model that predicts is
    return model.step_parts()


def read_inputs(prep: Preprocessor, at: Any) -> Float64[np.ndarray, " Du"]:
    """The constant inputs that `at` stands for; by default, and where a mapping has no value, their training means."""
    names, means = prep.input_names, np.asarray(prep.scaling.u_mean, dtype=np.float64)
    if at is None:
        return means.copy()
    if isinstance(at, Mapping):
        unknown = [name for name in at if name not in names]
        if unknown:
            raise InputError(f"at has a value for {unknown[0]!r}, which is not an input of the model; it has {names}")
        given = dict(zip(names, means, strict=True)) | dict(at)
        return np.array([check_number(f"at[{name!r}]", value) for name, value in given.items()])
    values = read_numbers(at)
    if values.shape != means.shape:
        raise InputError(f"at must be a finite value for each of the inputs {list(names)}, received {describe(at)}")
    return values


def read_numbers(values: Any) -> Float64[np.ndarray, " N"]:
    """A number or a list of numbers as an array; empty where it is something else, or not finite."""
    try:
        numbers = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        return np.empty(0)
    return numbers if numbers.ndim == 1 and np.isfinite(numbers).all() else np.empty(0)


def find_column(prep: Preprocessor, name: str | None) -> int:
    """The number of the input with this name; without a name the only one that there is."""
    names = prep.input_names
    if name is None and len(names) == 1:
        return 0
    if name not in names:
        received = "none was named" if name is None else f"received {describe(name)}"
        raise InputError(f"input must be one of {list(names)}; {received}")
    return names.index(name)


def find_operating_point(model: "Predictor", at: Any = None) -> OperatingPoint:
    """Find the equilibrium at constant inputs; a run that does not come to rest is refused."""
    parts, u = list_parts(model), read_inputs(model.preprocessor, at)
    names, outputs, states = model.preprocessor.input_names, [], []
    for part in parts:
        scaling, rest = part.preprocessor.scaling, find_equilibria(part, u[None])
        if not rest.found[0]:
            moves = f"does not come to rest in {STEPS} steps: it oscillates or drifts"
            raise InputError(
                f"no stable equilibrium at {describe_inputs(names, u)}: the run "
                f"{'diverges' if rest.diverged[0] else moves}; choose another operating point, or check the model"
            )
        past_u = np.tile(scaling.inputs(u[None]), (part.preprocessor.order.reach, 1))
        certain = np.zeros((rest.states.shape[1],) * 2)  # the state is known exactly
        states.append(StartState(rest.states[0], certain, past_u))
        outputs.append(scaling.raw_outputs(rest.outputs[0]))
    return OperatingPoint(u, np.mean(outputs, axis=0), tuple(states), names)


def describe_inputs(names: Sequence[str], values: Float64[np.ndarray, " Du"]) -> str:
    """Constant inputs for messages and titles."""
    return ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, values, strict=True))


def find_equilibria(part: MemberParts, u: Float64[np.ndarray, "N Du"]) -> Equilibria:
    """Run to rest at every row of raw inputs, then solve for the equilibrium by Newton's method."""
    chain, z = part.chain, part.preprocessor.scaling.inputs(u)
    input_lags = part.preprocessor.order.input_lags
    u_bar = np.tile(z, (1, input_lags))
    size = chain.lags * sum(chain.latent_dims)
    half, _ = _run(chain, np.full((len(z), size), PUSH), u_bar)
    end, change = _run(chain, half, u_bar)
    solved = _solve(chain, _newest(chain, end), z, input_lags)
    half, end, change, states, outputs, gains, residual = map(np.asarray, (half, end, change, *solved))
    diverged = np.logical_not((np.abs(end) < FAR).all(axis=1))  # also where it is not a number
    with np.errstate(invalid="ignore"):
        root = np.isfinite(states).all(axis=1) & (residual < RESIDUAL) & ~diverged
        distance, before = (np.abs(values - states).max(axis=1) for values in (end, half))
        found = root & (change < REST) & (distance < NEAR)
        slow = root & ~found & (distance < APPROACH * before)
    found[slow] = [_is_stable(chain, state, now) for state, now in zip(states[slow], u_bar[slow], strict=True)]
    return Equilibria(states, outputs, gains, found, diverged)


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
@partial(jax.vmap, in_axes=(None, 0, 0, None))
def _solve(
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


@dataclass(frozen=True, eq=False, repr=False)
class Linearisation:
    """A linear model x⁺ = A x + B u, y = C x + D u of the deviations from an operating point, raw units.

    The state is what the model remembers: the windows of its latent states (of its outputs in a NARX model), newest
    first, and then its past inputs, oldest first. That of an ensemble has the states of all members, one after the
    other. Latent states are z-scored, inputs and outputs are in raw units.

    Attributes
    ----------
    A, B, C, D : arrays [S, S], [S, inputs], [outputs, S], [outputs, inputs]
        The matrices. D is zero unless the model has direct feedthrough (`input_delay=0`).
    point : OperatingPoint
        Inputs and outputs that the deviations are from.
    dt : float
        Sampling interval.
    input_names, output_names, state_names : tuple of str
        Names of the columns and of the states.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(90.0) ** 1.5)
    >>> y = np.convolve(u, 0.8 ** np.arange(30))[:90]
    >>> model = revarb.ARX(lags=1, input_lags=1, input_delay=0).fit(revarb.Series(u, y))
    >>> linear = model.linearise()
    >>> linear
    Linearisation(1 states, inputs ('u',), outputs ('y',), largest pole 0.8)
    >>> linear.static_gain.round(2).tolist()
    [[5.0]]
    """

    A: Float64[np.ndarray, "S S"]
    B: Float64[np.ndarray, "S Du"]
    C: Float64[np.ndarray, "Dy S"]
    D: Float64[np.ndarray, "Dy Du"]
    point: OperatingPoint
    dt: float
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    state_names: tuple[str, ...]

    def __repr__(self) -> str:
        columns = f"inputs {self.input_names}, outputs {self.output_names}"
        return f"Linearisation({len(self.A)} states, {columns}, largest pole {np.abs(self.poles).max(initial=0.0):.4g})"

    @cached_property
    def poles(self) -> Complex128[np.ndarray, " S"]:
        """Eigenvalues of A, the largest magnitude first; those at 0 are delays of past inputs."""
        poles = np.linalg.eigvals(self.A).astype(np.complex128)
        return poles[np.argsort(-np.abs(poles), kind="stable")]

    @property
    def time_constants(self) -> Float64[np.ndarray, " S"]:
        """Time in which the motion of each of the `poles` decays to 1/e, in units of `dt`; 0 for a delay."""
        with np.errstate(divide="ignore"):
            return -self.dt / np.log(np.abs(self.poles))

    @property
    def static_gain(self) -> Float64[np.ndarray, "Dy Du"]:
        """Change of the outputs at rest per change of the inputs, raw units."""
        return self.C @ np.linalg.solve(np.eye(len(self.A)) - self.A, self.B) + self.D

    def transfer_matrix(self, frequencies: Float64[np.ndarray, " F"]) -> Complex128[np.ndarray, "F Dy Du"]:
        """The complex gains at some frequencies.

        Parameters
        ----------
        frequencies : array [F]
            Cycles per unit of `dt`: in Hz where that is in seconds.

        Returns
        -------
        array [F, outputs, inputs]
            Complex gains.
        """
        z = np.exp(2j * np.pi * self.dt * np.asarray(frequencies, dtype=np.float64))
        inverse = np.linalg.solve(z[:, None, None] * np.eye(len(self.A)) - self.A, self.B.astype(np.complex128)[None])
        return self.C @ inverse + self.D

    def step(self, steps: int) -> Float64[np.ndarray, "T Dy Du"]:
        """Responses of the outputs to a unit step of each input at row 0, from rest.

        Parameters
        ----------
        steps : int
            Number of rows.

        Returns
        -------
        array [T, outputs, inputs]
            Deviations from the operating point, raw units.
        """
        state, rows = np.zeros_like(self.B), []
        for _ in range(steps):
            rows.append(self.C @ state + self.D)
            state = self.A @ state + self.B
        return np.stack(rows)

    def to_control(self) -> Any:
        """The same as a `StateSpace` of python-control, with names and sampling interval.

        Returns
        -------
        control.StateSpace
            A dot in a name, which python-control does not allow, is a line there.

        Raises
        ------
        InputError
            If python-control is not installed.
        """
        try:
            import control
        except ModuleNotFoundError as error:
            raise InputError(f'to_control needs {error.name}; pip install "revarb[control]"') from None
        names = {"inputs": self.input_names, "outputs": self.output_names, "states": self.state_names}
        plain = {kind: [name.replace(".", "_") for name in values] for kind, values in names.items()}
        unique = {kind: values for kind, values in plain.items() if len(set(values)) == len(values)}
        return control.ss(self.A, self.B, self.C, self.D, self.dt, **unique)

    def plot(self, fig: "Figure | SubFigure | None" = None) -> "Figure":
        """Draw the poles in the unit circle, and the responses to unit steps.

        Parameters
        ----------
        fig : matplotlib Figure or SubFigure, optional
            Where to draw; its size and layout stay. Default: a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with `figure.savefig("poles.png")`; a notebook displays it.
        """
        from revarb.models.analysis_figures import draw_linearisation  # matplotlib is slow to import

        return draw_linearisation(self, fig)


def linearise_model(model: "Predictor", at: Any = None) -> Linearisation:
    """Linearise a model at the equilibrium of constant inputs; the members of an ensemble side by side."""
    prep, parts, point = model.preprocessor, list_parts(model), find_operating_point(model, at)
    if prep.find_extrapolation(point.inputs[None], point.outputs[None]).any():
        warn_user(f"the operating point {point} is outside of what training has shown: no training data support it")
    found = [_linearise_part(part, point, state) for part, state in zip(parts, point.states, strict=True)]
    a, b, c, d = zip(*found, strict=True)
    matrices = (
        np.asarray(scipy.linalg.block_diag(*a)),
        np.concatenate(b),
        np.concatenate(c, axis=1) / len(c),
        np.mean(d, axis=0),
    )
    if not all(np.isfinite(each).all() for each in matrices):
        raise ComputationError("the derivatives of the model at this operating point are not finite")
    heads = [f"member {number}: " for number in range(1, len(parts) + 1)] if len(parts) > 1 else [""]
    names = [f"{head}{name}" for head, part in zip(heads, parts, strict=True) for name in _name_states(part)]
    return Linearisation(*matrices, point, prep.dt, prep.input_names, prep.output_names, tuple(names))


def _linearise_part(part: MemberParts, point: OperatingPoint, rest: StartState) -> list[Float64[np.ndarray, "_ _"]]:
    # A, B, C and D of one chain, raw units.
    chain, scaling, order = part.chain, part.preprocessor.scaling, part.preprocessor.order
    x = np.concatenate([rest.mean, np.ravel(rest.past_u)])
    derivatives = _differentiate_step(chain, order, x, scaling.inputs(point.inputs[None])[0])
    (a, b), (c, d) = (map(np.asarray, pair) for pair in derivatives)
    # The states of a NARX model are outputs; latent ones have no unit.
    states = np.tile(scaling.y_std, chain.lags) if chain.output is None else np.ones(len(rest.mean))
    scale = np.concatenate([states, np.tile(scaling.u_std, order.reach)])[:, None]
    to_outputs, to_inputs = scaling.y_std[:, None], 1.0 / scaling.u_std
    return [scale * a / scale.T, scale * b * to_inputs, to_outputs * c / scale.T, to_outputs * d * to_inputs]


@partial(jax.jit, static_argnames="order")
@partial(jax.jacfwd, argnums=(2, 3))
def _differentiate_step(
    chain: Chain, order: Order, x: Float[AnyArray, " S"], u: Float[AnyArray, " Du"]
) -> tuple[Float[AnyArray, " S"], Float[AnyArray, " Dy"]]:
    # One step of windows and past inputs together, z-scored; its derivatives by both.
    size = chain.lags * sum(chain.latent_dims)
    recent = jnp.concatenate([jnp.reshape(x[size:], (order.reach, len(u))), u[None]])
    newest = order.reach - order.input_delay
    u_bar = jnp.concatenate([recent[newest - age] for age in range(order.input_lags)])
    state, y = advance_mean(chain, x[:size], u_bar)
    return jnp.concatenate([state, jnp.ravel(recent[1:])]), y


def _name_states(part: MemberParts) -> list[str]:
    prep = part.preprocessor
    # In the order of the state: one step ago is the newest.
    layers = [list(prep.output_names)]
    if part.chain.output is not None:
        sizes = enumerate(part.chain.latent_dims, start=1)
        layers = [[f"layer {layer} state {state}" for state in range(1, dim + 1)] for layer, dim in sizes]
    own = [(name, age) for names in layers for age in range(1, part.chain.lags + 1) for name in names]
    past = [(name, age) for age in range(prep.order.reach, 0, -1) for name in prep.input_names]
    return [f"{name}, {age} ago" for name, age in own + past]
