"""Figure of a simulated or predicted trajectory, with its band and the measured output."""

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from revarb.data.series import as_matrix
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError
from revarb.runtime.figure_style import BAND, GREY, MEASURED, MODEL, add_panels, finish_figure


@rc_context({"text.parse_math": False})  # a column may be named a$b$
def draw_trajectory(path: Trajectory, measured: ArrayLike | None, title: str) -> Figure:
    """The output with its 95 % band, over the measured output where it is given; one panel per output."""
    values = None if measured is None else _check_measured(path, measured)
    outputs = path.mean.shape[1]
    figure = Figure(figsize=(10, 1.2 + 2.6 * outputs), layout="constrained")
    time = np.arange(len(path)) * path.dt
    for column, axes in enumerate(add_panels(figure, outputs)):
        if path.std is not None:
            draw_band(axes, time, path, column)
        if values is not None:
            draw_measured(axes, time, values[:, column])
        axes.plot(time, path.mean[:, column], color=MODEL, lw=1.3, label=f"model ({path.method})")
        if 0 < path.skip < len(path):
            axes.axvline(path.skip * path.dt, color=GREY, lw=0.8, ls=":", label="scored from here")
        axes.set_ylabel(path.output_names[column])
    finish_figure(figure, title)
    return figure


def draw_measured(axes: Axes, time: np.ndarray, values: np.ndarray, width: float = 1.1) -> None:
    """The measured output as a line; a value between two gaps, which a line does not show, as a dot."""
    axes.plot(time, values, color=MEASURED, lw=width, label="measured")
    gap = np.isnan(np.concatenate([[np.nan], values, [np.nan]]))
    isolated = ~gap[1:-1] & gap[:-2] & gap[2:]
    if isolated.any():
        axes.plot(time[isolated], values[isolated], color=MEASURED, marker=".", ms=3, lw=0)


def draw_band(axes: Axes, time: np.ndarray, path: Trajectory, column: int) -> None:
    """The 95 % band of one output."""
    lower, upper = path.interval(0.95)
    axes.fill_between(time, lower[:, column], upper[:, column], color=BAND, lw=0, label="95 % band")


def _check_measured(path: Trajectory, measured: ArrayLike) -> np.ndarray:
    values = as_matrix("measured", measured, gaps=True, columns=path.output_names)
    if values.shape != path.mean.shape:
        raise InputError(
            f"measured has shape {values.shape}, but the trajectory has {path.mean.shape}; pass the same rows"
        )
    return values
