"""A trained model as a linear state-space model near an operating point, and its frequency response."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jaxtyping import Complex128, Float, Float64
from numpy.typing import ArrayLike

from revarb.data.windows import Order
from revarb.errors import ComputationError, InputError
from revarb.export.step_model import MemberParts
from revarb.models.operating_point import (
    OperatingPoint,
    find_column,
    find_operating_point,
    list_parts,
    read_numbers,
)
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.mean import advance_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from revarb.models.prediction import Predictor

POINTS = 200  # of the default frequencies
SLOWEST, FASTEST = 1e-6, 1e-2  # limits of the lowest of them, cycles per sample
BELOW = 10.0  # times below the corner of the slowest pole that it is


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

    def plot(self) -> "Figure":
        """Draw the poles in the unit circle, and the responses to unit steps.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with `figure.savefig("poles.png")`; a notebook displays it.
        """
        from revarb.models.analysis_figures import draw_linearisation  # matplotlib is slow to import

        return draw_linearisation(self)


@dataclass(frozen=True, eq=False, repr=False)
class FrequencyResponse:
    """Frequency response of a model near an operating point, as `model.frequency_response` returns it.

    Attributes
    ----------
    frequencies : array [F]
        Cycles per unit of `dt`: in Hz where that is in seconds.
    response : array [F, outputs, inputs]
        Complex gains, outputs per input in raw units.
    point : OperatingPoint
        Where the model was linearised.
    dt : float
        Sampling interval.
    input_names, output_names : tuple of str
        Names of the columns.

    Examples
    --------
    A first-order lag: at its corner frequency the gain has fallen to about 0.7 of the static one.

    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(90.0) ** 1.5)
    >>> y = np.convolve(u, 0.9 ** np.arange(80))[:90]
    >>> model = revarb.ARX(lags=1, input_lags=1, input_delay=0).fit(revarb.Series(u, y))
    >>> response = model.frequency_response(frequencies=[1e-6, 0.1 / (2.0 * np.pi)])
    >>> response.magnitude[:, 0, 0].round(1).tolist()
    [10.0, 7.3]
    """

    frequencies: Float64[np.ndarray, " F"]
    response: Complex128[np.ndarray, "F Dy Du"]
    point: OperatingPoint
    dt: float
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    def __repr__(self) -> str:
        low, high = self.frequencies.min(), self.frequencies.max()
        columns = f"inputs {self.input_names}, outputs {self.output_names}"
        return f"FrequencyResponse({len(self.frequencies)} frequencies from {low:.3g} to {high:.3g}, {columns})"

    @property
    def magnitude(self) -> Float64[np.ndarray, "F Dy Du"]:
        """Amplitude of the outputs per amplitude of the inputs, raw units."""
        return np.abs(self.response)

    @property
    def phase(self) -> Float64[np.ndarray, "F Dy Du"]:
        """Phase in degrees, without jumps of a whole turn between neighbouring frequencies."""
        return np.degrees(np.unwrap(np.angle(self.response), axis=0))

    def plot(self) -> "Figure":
        """Draw magnitude and phase over the frequency (Bode diagram), a column of panels per input.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with `figure.savefig("bode.png")`; a notebook displays it.
        """
        from revarb.models.analysis_figures import draw_frequency_response  # matplotlib is slow to import

        return draw_frequency_response(self)


def linearise_model(model: "Predictor", at: Any = None) -> Linearisation:
    """Linearise a model at the equilibrium of constant inputs; the members of an ensemble side by side."""
    prep, parts, point = model.preprocessor, list_parts(model), find_operating_point(model, at)
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


def compute_frequency_response(
    model: "Predictor", at: Any = None, frequencies: ArrayLike | None = None, name: str | None = None
) -> FrequencyResponse:
    """Linearise a model and compute its response; with a name that to this input only."""
    linear, prep = linearise_model(model, at), model.preprocessor
    known = _choose_frequencies(linear) if frequencies is None else _check_frequencies(frequencies, prep.dt)
    columns = list(range(len(prep.input_names))) if name is None else [find_column(prep, name)]
    names = tuple(prep.input_names[column] for column in columns)
    response = linear.transfer_matrix(known)[:, :, columns]
    return FrequencyResponse(known, response, linear.point, prep.dt, names, prep.output_names)


def _choose_frequencies(linear: Linearisation) -> Float64[np.ndarray, " F"]:
    # From below the slowest pole to the Nyquist frequency.
    largest = min(float(np.abs(linear.poles).max(initial=0.0)), 1.0)
    corner = (1.0 - largest) / (2.0 * np.pi)  # of a first-order lag, cycles per sample
    low = float(np.clip(corner / BELOW, SLOWEST, FASTEST))
    return np.geomspace(low, 0.5, POINTS) / linear.dt


def _check_frequencies(frequencies: ArrayLike, dt: float) -> Float64[np.ndarray, " F"]:
    values, nyquist = read_numbers(frequencies), 0.5 / dt
    if not len(values) or not ((values > 0.0) & (values <= nyquist * (1.0 + 1e-9))).all():
        raise InputError(
            f"frequencies must be a list of numbers above 0 and at most the Nyquist frequency, {nyquist:g}; pass none "
            "for the whole range"
        )
    return values
