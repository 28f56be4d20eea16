"""Frequency response of a linearised model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Complex128, Float64
from numpy.typing import ArrayLike

from revarb.errors import InputError
from revarb.models.base import Fitted
from revarb.models.linearisation import Linearisation, linearise_model
from revarb.models.operating_point import OperatingPoint, find_column

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 200  # of the default frequencies
SLOWEST, FASTEST = 1e-6, 1e-2  # limits of the lowest of them, cycles per sample
BELOW = 10.0  # it is so many times below the corner of the slowest pole


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
        from revarb.models.response_figures import draw_frequency_response  # matplotlib is slow to import

        return draw_frequency_response(self)


def compute_frequency_response(
    model: Fitted, at: Any = None, frequencies: ArrayLike | None = None, name: str | None = None
) -> FrequencyResponse:
    """Linearise a model and compute its response; with a name that to this input only."""
    linear = linearise_model(model, at)
    known = _choose_frequencies(linear) if frequencies is None else _check_frequencies(frequencies, model.dt)
    columns = list(range(len(model.input_names))) if name is None else [find_column(model, name)]
    names = tuple(model.input_names[column] for column in columns)
    response = linear.transfer_matrix(known)[:, :, columns]
    return FrequencyResponse(known, response, linear.point, model.dt, names, model.output_names)


def _choose_frequencies(linear: Linearisation) -> Float64[np.ndarray, " F"]:
    # From below the slowest pole to the Nyquist frequency.
    largest = min(float(np.abs(linear.poles).max(initial=0.0)), 1.0)
    corner = (1.0 - largest) / (2.0 * np.pi)  # of a first-order lag, cycles per sample
    low = float(np.clip(corner / BELOW, SLOWEST, FASTEST))
    return np.geomspace(low, 0.5, POINTS) / linear.dt


def _check_frequencies(frequencies: ArrayLike, dt: float) -> Float64[np.ndarray, " F"]:
    try:
        values = np.atleast_1d(np.asarray(frequencies, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.empty(0)
    nyquist = 0.5 / dt
    if values.ndim != 1 or not len(values) or not ((values > 0.0) & (values <= nyquist * (1.0 + 1e-9))).all():
        raise InputError(
            f"frequencies must be a list of numbers above 0 and at most the Nyquist frequency, {nyquist:g}; pass none "
            "for the whole range"
        )
    return values
