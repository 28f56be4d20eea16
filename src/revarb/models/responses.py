"""Responses of a nonlinear model: to a step of an input, over frequency, and at rest over the range of an input."""

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Complex128, Float64
from numpy.typing import ArrayLike

from revarb.data.preprocessor import Preprocessor
from revarb.data.trajectory import Trajectory
from revarb.data.windows import input_windows_after
from revarb.errors import InputError, check_integer, check_number, warn_user
from revarb.models.linearisation import (
    Linearisation,
    OperatingPoint,
    find_column,
    find_equilibria,
    find_operating_point,
    linearise_model,
    list_parts,
    read_inputs,
    read_numbers,
)
from revarb.simulation.mean import run_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

    from revarb.models.prediction import Predictor

LEAST_STEPS, MOST_STEPS = 20, 2000  # of a response whose length is not given
SETTLED, TAIL = 0.01, 1.3  # it ends when 1 % of the change is left, and a third of that time later
RISE, SETTLED_WITHIN = (0.1, 0.9), 0.02  # shares of the change, as is usual
CURVE_POINTS = 41  # of the default inputs
UNKNOWN_RANGE = 2.0  # standard deviations around the mean, where a file does not know the range of its inputs
FREQUENCIES = 200  # of which a response has values by default
SLOWEST, FASTEST = 1e-6, 1e-2  # limits of the lowest of them, cycles per sample
BELOW = 10.0  # times below the corner of the slowest pole that it is


@dataclass(frozen=True, eq=False, repr=False)
class StepResponse:
    """Response of the outputs to a step of one input, as `model.step_response` returns it.

    The input steps at row 0; before it the model was at rest. Times are in units of `dt`, counted from the step.

    Attributes
    ----------
    path : Trajectory
        The outputs. The mean is that of the mean-only run, so that it begins at the equilibrium. The band, where the
        model has one, is that of measurements, with the state before the step known.
    point : OperatingPoint
        Inputs and outputs before the step.
    input_name : str
        The input that steps.
    size : float
        Height of the step, raw units.
    final : array [outputs]
        Outputs at rest after the step; where the model does not come to rest there, those of the last row.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(90.0) ** 1.5)
    >>> y = np.convolve(u, 0.8 ** np.arange(30))[:90]
    >>> model = revarb.ARX(lags=1, input_lags=1, input_delay=0).fit(revarb.Series(u, y))
    >>> response = model.step_response(size=0.1, at=0.0)
    >>> response
    StepResponse(0.1 of 'u', 26 rows, outputs ('y',))
    >>> response.gain.round(2).tolist(), response.rise_time.tolist(), response.settling_time.tolist()
    ([5.0], [10.0], [17.0])
    """

    path: Trajectory
    point: OperatingPoint
    input_name: str
    size: float
    final: Float64[np.ndarray, " Dy"]

    def __repr__(self) -> str:
        return (
            f"StepResponse({self.size:g} of {self.input_name!r}, {len(self.path)} rows, "
            f"outputs {self.path.output_names})"
        )

    @property
    def time(self) -> Float64[np.ndarray, " T"]:
        """Time since the step."""
        return np.arange(len(self.path)) * self.path.dt

    @property
    def change(self) -> Float64[np.ndarray, " Dy"]:
        """Outputs at rest after the step minus those before it."""
        return self.final - self.point.outputs

    @property
    def gain(self) -> Float64[np.ndarray, " Dy"]:
        """Change of the outputs per change of the input."""
        return self.change / self.size

    @property
    def rise_time(self) -> Float64[np.ndarray, " Dy"]:
        """Time from 10 % to 90 % of the change; NaN where the rows do not reach it."""
        low, high = (self._first_row(share) for share in RISE)
        return (high - low) * self.path.dt

    @property
    def settling_time(self) -> Float64[np.ndarray, " Dy"]:
        """Time after which the output stays within 2 % of the change; NaN where the rows end before."""
        outside = np.abs(self._shares() - 1.0) > SETTLED_WITHIN
        last = np.where(outside.any(axis=0), len(outside) - np.argmax(outside[::-1], axis=0), 0).astype(np.float64)
        return np.where(last < len(outside), last, np.nan) * self.path.dt

    @property
    def overshoot(self) -> Float64[np.ndarray, " Dy"]:
        """How far the output goes beyond its final value, as a share of the change; 0 where it does not."""
        return np.maximum(self._shares().max(axis=0) - 1.0, 0.0)

    def plot(self, fig: "Figure | SubFigure | None" = None) -> "Figure":
        """Draw the input, and every output with its band, its value before the step and its final one.

        Parameters
        ----------
        fig : matplotlib Figure or SubFigure, optional
            Where to draw; its size and layout stay. Default: a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with `figure.savefig("step.png")`; a notebook displays it.
        """
        from revarb.models.analysis_figures import draw_step_response  # matplotlib is slow to import

        return draw_step_response(self, fig)

    def _shares(self) -> Float64[np.ndarray, "T Dy"]:
        # Of the change that is done at every row; NaN where nothing changes.
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.change != 0.0, (self.path.mean - self.point.outputs) / self.change, np.nan)

    def _first_row(self, share: float) -> Float64[np.ndarray, " Dy"]:
        reached = self._shares() >= share
        return np.where(reached.any(axis=0), np.argmax(reached, axis=0), np.nan)


@dataclass(frozen=True, eq=False, repr=False)
class StaticGainCurve:
    """Outputs at rest over one input, as `model.static_gain_curve` returns them, raw units.

    Where the model does not come to rest the outputs and gains are NaN.

    Attributes
    ----------
    inputs : array [N]
        Values of the input.
    outputs : array [N, outputs]
        Outputs at rest.
    gains : array [N, outputs]
        Slope of the curve: the static gain of the linearisation at each point.
    others : array [inputs]
        The constant values of all inputs; that of the one which varies has no meaning.
    input_name : str
        The input that varies.
    input_names, output_names : tuple of str
        Names of the columns.
    extrapolates : array of bool [N]
        Where an input, or an output at rest, is outside of the range it had in training: there the curve is what the
        model makes of it, and no datum supports it.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> u = np.sin(np.arange(90.0) ** 1.5)
    >>> y = np.convolve(u, 0.8 ** np.arange(30))[:90]
    >>> model = revarb.ARX(lags=1, input_lags=1, input_delay=0).fit(revarb.Series(u, y))
    >>> curve = model.static_gain_curve([0.1, 0.5])
    >>> curve.outputs[:, 0].round(2).tolist(), curve.gains[:, 0].round(2).tolist()
    ([0.5, 2.5], [5.0, 5.0])
    """

    inputs: Float64[np.ndarray, " N"]
    outputs: Float64[np.ndarray, "N Dy"]
    gains: Float64[np.ndarray, "N Dy"]
    others: Float64[np.ndarray, " Du"]
    input_name: str
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    extrapolates: Bool[np.ndarray, " N"]

    def __repr__(self) -> str:
        low, high = self.inputs.min(), self.inputs.max()
        return f"StaticGainCurve({self.input_name!r} from {low:.4g} to {high:.4g}, outputs {self.output_names})"

    def plot(self, fig: "Figure | SubFigure | None" = None) -> "Figure":
        """Draw every output at rest, and its gain, over the input.

        Parameters
        ----------
        fig : matplotlib Figure or SubFigure, optional
            Where to draw; its size and layout stay. Default: a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with `figure.savefig("static.png")`; a notebook displays it.
        """
        from revarb.models.analysis_figures import draw_static_gain_curve  # matplotlib is slow to import

        return draw_static_gain_curve(self, fig)


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

    def plot(self, fig: "Figure | SubFigure | None" = None) -> "Figure":
        """Draw magnitude and phase over the frequency (Bode diagram), a column of panels per input.

        Parameters
        ----------
        fig : matplotlib Figure or SubFigure, optional
            Where to draw; its size and layout stay. Default: a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with `figure.savefig("bode.png")`; a notebook displays it.
        """
        from revarb.models.analysis_figures import draw_frequency_response  # matplotlib is slow to import

        return draw_frequency_response(self, fig)


def compute_step_response(
    model: "Predictor", size: float | None = None, at: Any = None, steps: int | None = None, name: str | None = None
) -> StepResponse:
    """Simulate a step of one input from the equilibrium at constant inputs."""
    list_parts(model)  # refuses a model without inputs
    prep = model.preprocessor
    column = find_column(prep, name)
    height = float(prep.scaling.u_std[column]) if size is None else check_number("size", size)
    if steps is not None:
        steps = check_integer("steps", steps, least=1)
    point = find_operating_point(model, at)
    after = point.inputs.copy()
    after[column] += height
    try:
        final = find_operating_point(model, after).outputs
    except InputError:  # it does not come to rest there
        final = None
    u = np.tile(after, (MOST_STEPS if steps is None else steps, 1))
    mean = _run_mean_from(model, point, u)
    rows = _count_rows(mean, point, final) if steps is None else steps
    path = _add_band(model, point, u[:rows], mean[:rows])
    return StepResponse(path, point, prep.input_names[column], height, path.mean[-1] if final is None else final)


def _run_mean_from(
    model: "Predictor", point: OperatingPoint, u: Float64[np.ndarray, "T Du"]
) -> Float64[np.ndarray, "T Dy"]:
    # The mean-only run of a model from its equilibrium, raw units; the mean of the members of an ensemble.
    runs = []
    for part, state in zip(list_parts(model), point.states, strict=True):
        scaling, order = part.preprocessor.scaling, part.preprocessor.order
        u_bar = input_windows_after(np.asarray(state.past_u), scaling.inputs(u), order)
        runs.append(scaling.raw_outputs(np.asarray(run_mean(part.chain, state, u_bar))))
    return np.mean(runs, axis=0)


def _count_rows(
    mean: Float64[np.ndarray, "T Dy"], point: OperatingPoint, final: Float64[np.ndarray, " Dy"] | None
) -> int:
    # As many as the slowest output needs to settle; the most where it never does.
    if final is None:
        return MOST_STEPS
    moving = np.flatnonzero((np.abs(mean - final) > SETTLED * np.abs(final - point.outputs)).any(axis=1))
    last = int(moving[-1]) + 1 if len(moving) else 0
    return int(np.clip(np.ceil(TAIL * last), LEAST_STEPS, MOST_STEPS))


def _add_band(
    model: "Predictor", point: OperatingPoint, u: Float64[np.ndarray, "T Du"], mean: Float64[np.ndarray, "T Dy"]
) -> Trajectory:
    # The mean-only run, with the band of the model's own simulation from there.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `add_inputs` below warns of inputs that leave their training range, once
        banded = model._simulate_from(point.states, u)
    path = replace(banded, mean=mean, disagreement=None, start="equilibrium")
    prep = model.preprocessor
    return prep.add_inputs(path, prep.read_inputs(u, None))


def compute_static_gain_curve(
    model: "Predictor", inputs: ArrayLike | None = None, name: str | None = None, at: Any = None
) -> StaticGainCurve:
    """Find the equilibria over one input, the other inputs constant."""
    prep, parts = model.preprocessor, list_parts(model)
    column, others = find_column(prep, name), read_inputs(prep, at)
    values = _choose_inputs(prep, column) if inputs is None else read_numbers(inputs)
    if not len(values):
        raise InputError("inputs must be a list of finite values of one input; pass none for its training range")
    u = np.tile(others, (len(values), 1))
    u[:, column] = values
    outputs, gains = [], []
    for part in parts:
        scaling, rest = part.preprocessor.scaling, find_equilibria(part, u)
        known = np.where(rest.found, 1.0, np.nan)[:, None]
        outputs.append(known * scaling.raw_outputs(rest.outputs))
        gains.append(known * rest.gains[:, :, column] * scaling.y_std / scaling.u_std[column])
    if np.isnan(np.mean(outputs, axis=0)).all():
        raise InputError(
            f"the model comes to rest at none of the {len(values)} values of {prep.input_names[column]!r}; choose "
            "others (inputs=…, at=…), or check the model"
        )
    names, at_rest = (prep.input_names[column], prep.input_names, prep.output_names), np.mean(outputs, axis=0)
    extrapolates = prep.find_extrapolation(u, at_rest)
    if extrapolates.any():
        warn_user(
            f"the static gain curve leaves what training has shown in {extrapolates.sum()} of {len(values)} values of "
            f"{names[0]!r}: no training data support it there"
        )
    return StaticGainCurve(values, at_rest, np.mean(gains, axis=0), others, *names, extrapolates)


def _choose_inputs(prep: Preprocessor, column: int) -> Float64[np.ndarray, " N"]:
    known, scaling = prep.input_range, prep.scaling
    if known is not None:
        return np.linspace(known.low[column], known.high[column], CURVE_POINTS)
    mean, reach = scaling.u_mean[column], UNKNOWN_RANGE * scaling.u_std[column]
    return np.linspace(mean - reach, mean + reach, CURVE_POINTS)


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
    return np.geomspace(low, 0.5, FREQUENCIES) / linear.dt


def _check_frequencies(frequencies: ArrayLike, dt: float) -> Float64[np.ndarray, " F"]:
    values, nyquist = read_numbers(frequencies), 0.5 / dt
    if not len(values) or not ((values > 0.0) & (values <= nyquist * (1.0 + 1e-9))).all():
        raise InputError(
            f"frequencies must be a list of numbers above 0 and at most the Nyquist frequency, {nyquist:g}; pass none "
            "for the whole range"
        )
    return values
