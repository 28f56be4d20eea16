"""Outputs at rest over the range of an input."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from revarb.errors import InputError
from revarb.models.base import Fitted
from revarb.models.operating_point import find_column, find_equilibria, list_chains, read_inputs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 41  # of the default inputs
UNKNOWN_RANGE = 2.0  # standard deviations around the mean, where a file does not know the range of its inputs


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

    def __repr__(self) -> str:
        low, high = self.inputs.min(), self.inputs.max()
        return f"StaticGainCurve({self.input_name!r} from {low:.4g} to {high:.4g}, outputs {self.output_names})"

    def plot(self) -> "Figure":
        """Draw every output at rest, and its gain, over the input.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with `figure.savefig("static.png")`; a notebook displays it.
        """
        from revarb.models.response_figures import draw_static_gain_curve  # matplotlib is slow to import

        return draw_static_gain_curve(self)


def compute_static_gain_curve(
    model: Fitted, inputs: ArrayLike | None = None, name: str | None = None, at: Any = None
) -> StaticGainCurve:
    """Find the equilibria over one input, the other inputs constant."""
    parts, column, others = list_chains(model), find_column(model, name), read_inputs(model, at)
    values = _choose_inputs(model, column) if inputs is None else _check_inputs(inputs)
    u = np.tile(others, (len(values), 1))
    u[:, column] = values
    outputs, gains = [], []
    for part in parts:
        rest = find_equilibria(part, u)
        known = np.where(rest.found, 1.0, np.nan)[:, None]
        outputs.append(known * part.scaling.raw_outputs(rest.outputs))
        gains.append(known * rest.gains[:, :, column] * part.scaling.y_std / part.scaling.u_std[column])
    if np.isnan(np.mean(outputs, axis=0)).all():
        raise InputError(
            f"the model comes to rest at none of the {len(values)} values of {model.input_names[column]!r}; choose "
            "others (inputs=…, at=…), or check the model"
        )
    names = model.input_names[column], model.input_names, model.output_names
    return StaticGainCurve(values, np.mean(outputs, axis=0), np.mean(gains, axis=0), others, *names)


def _choose_inputs(model: Fitted, column: int) -> Float64[np.ndarray, " N"]:
    known = model.preprocessor.input_range
    if known is not None:
        return np.linspace(known.low[column], known.high[column], POINTS)
    mean, reach = model.scaling.u_mean[column], UNKNOWN_RANGE * model.scaling.u_std[column]
    return np.linspace(mean - reach, mean + reach, POINTS)


def _check_inputs(inputs: ArrayLike) -> Float64[np.ndarray, " N"]:
    try:
        values = np.atleast_1d(np.asarray(inputs, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InputError("inputs must be a list of finite values of one input; pass none for its training range")
    return values
