"""Figure of a simulated or predicted trajectory, with its band and the measured output."""

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from revarb.data.trajectory import Trajectory
from revarb.runtime.figure_style import BAND, MEASURED, MODEL, QUIET, encode_figure, finish_figure, rows_of_axes


@rc_context({"text.parse_math": False})  # a column may be called a$b$
def trajectory_figure(path: Trajectory, measured: np.ndarray | None, title: str) -> bytes:
    """The simulated or predicted output with its 95 % band, over the measured output where there is one."""
    outputs = path.mean.shape[1]
    figure = Figure(figsize=(10, 1.2 + 2.6 * outputs), layout="constrained")
    time = np.arange(len(path)) * path.dt
    for column, axes in enumerate(rows_of_axes(figure, outputs)):
        if path.std is not None:
            draw_band(axes, time, path, column)
        if measured is not None:
            draw_measured(axes, time, measured[:, column])
        axes.plot(time, path.mean[:, column], color=MODEL, lw=1.3, label=f"model ({path.method})")
        if 0 < path.skip < len(path):
            axes.axvline(path.skip * path.dt, color=QUIET, lw=0.8, ls=":", label="scored from here")
        axes.set_ylabel(path.output_names[column])
    finish_figure(figure, title)
    return encode_figure(figure, "png")


def draw_measured(axes, time: np.ndarray, values: np.ndarray, width: float = 1.1) -> None:
    axes.plot(time, values, color=MEASURED, lw=width, label="measured")
    gap = np.isnan(np.concatenate([[np.nan], values, [np.nan]]))
    alone = ~gap[1:-1] & gap[:-2] & gap[2:]
    if alone.any():  # a line does not show a value between two gaps
        axes.plot(time[alone], values[alone], color=MEASURED, marker=".", ms=3, lw=0)


def draw_band(axes, time: np.ndarray, path: Trajectory, column: int) -> None:
    lower, upper = path.interval(0.95)
    axes.fill_between(time, lower[:, column], upper[:, column], color=BAND, lw=0, label="95 % band")
