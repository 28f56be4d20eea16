"""Figure of a simulated or predicted trajectory: inputs, outputs with their band and the measured ones, errors."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from revarb.data.dataframes import as_matrix, row_index, same_labels
from revarb.errors import InputError, describe
from revarb.runtime import figure_style as style

if TYPE_CHECKING:
    from revarb.data.trajectory import Trajectory

INPUT_HEIGHT, OUTPUT_HEIGHT, ERROR_HEIGHT = 0.7, 2.2, 0.9  # inches of a panel
OTHERS_MARGIN = 0.35  # of the height of an axis that lines of other models may add: one that diverges flattens nothing
MAX_SAMPLES = 30  # sampled trajectories that are drawn


@rc_context({"text.parse_math": False})  # a column may be named a$b$
def draw_trajectory(
    path: "Trajectory",
    measured: ArrayLike | None,
    title: str,
    others: Mapping[str, "Trajectory"],
    times: ArrayLike | None,
    given: style.AnyFigure | None,
) -> Figure:
    """Every input in a panel, then every output with its 95 % band and, where it was measured, its error.

    `others` are runs of other models, drawn as thin lines.
    """
    values = None if measured is None else _check_measured(path, measured)
    _check_others(path, others)
    inputs, outputs = 0 if path.inputs is None else path.inputs.shape[1], path.mean.shape[1]
    errors = [] if values is None else [ERROR_HEIGHT]
    heights = [INPUT_HEIGHT] * inputs + [OUTPUT_HEIGHT, *errors] * outputs
    figure = style.start_figure(given, 10.0, 1.2 + sum(heights))
    time, label = _find_times(path, times)
    panels = style.add_panels(figure, len(heights), heights=heights, time=label)
    for column, axes in enumerate(panels[:inputs]):
        _draw_input(axes, time, path, column)
    for column in range(outputs):
        own = panels[inputs + column * (1 + len(errors)) :]
        _draw_output(own[0], time, path, column, values)
        _draw_others(own[0], time, others, column)
        if values is not None:
            _draw_error(own[1], time, path, column, values[:, column])
    if _shade_settling(panels, time, path):
        panels[inputs].text(
            time[0], 0.98, " settling, not scored", transform=panels[inputs].get_xaxis_transform(), fontsize=7, va="top"
        )
    style.finish_figure(figure, title, panels)
    return style.find_root(figure)


@rc_context({"text.parse_math": False})
def draw_outputs(
    path: "Trajectory", measured: ArrayLike | None, title: str, times: ArrayLike | None, given: Axes | Sequence[Axes]
) -> Figure:
    """Every output with its band into given axes, in the colours of their cycle and the style of their figure."""
    axes = style.check_axes(given, path.mean.shape[1])
    values = None if measured is None else _check_measured(path, measured)
    time, label = _find_times(path, times)
    for column, panel in enumerate(axes):
        [line] = panel.plot(*style.thin_line(time, path.mean[:, column]), label=title or "model")
        if path.std is not None:
            draw_band(panel, time, path, column, color=line.get_color(), alpha=0.25)
        if values is not None:
            draw_measured(panel, time, values[:, column])
        panel.set(xlabel=label, ylabel=path.output_names[column])
        panel.legend()
    _shade_settling(axes, time, path)
    return style.find_root(axes[0].figure)


def _find_times(path: "Trajectory", given: ArrayLike | None) -> tuple[np.ndarray, str]:
    # Of the rows, and their label: those that are given, row labels that are times, or multiples of the interval.
    labels = None if path.index is None or path.index.seconds() is None else path.index.labels
    times = labels if given is None else given
    if times is None:
        return np.arange(len(path)) * path.dt, style.name_time(path.dt)
    values = np.asarray(times)
    if values.shape != (len(path),) or values.dtype.kind not in "iufMm":
        raise InputError(f"times must be {len(path)} numbers or points in time, received {describe(given)}")
    return values, str(getattr(times, "name", None) or "time")


def draw_measured(axes: Axes, time: np.ndarray, values: np.ndarray, width: float = 1.0) -> None:
    """The measured output as a thin line in front; a value between two gaps, which a line does not show, as a dot."""
    axes.plot(*style.thin_line(time, values), color=style.MEASURED, lw=width, label="measured", zorder=3)
    gap = np.isnan(np.concatenate([[np.nan], values, [np.nan]]))
    isolated = ~gap[1:-1] & gap[:-2] & gap[2:]
    if isolated.any():
        axes.plot(time[isolated], values[isolated], color=style.MEASURED, marker=".", ms=3, lw=0, zorder=3)


def draw_band(
    axes: Axes, time: np.ndarray, path: "Trajectory", column: int, color: Any = style.BAND, alpha: float = 1.0
) -> None:
    """The 95 % band of one output."""
    lower, upper = path.interval(0.95)
    thin = style.thin_band(time, lower[:, column], upper[:, column])
    axes.fill_between(*thin, color=color, alpha=alpha, lw=0, label="95 % band")


def _draw_input(axes: Axes, time: np.ndarray, path: "Trajectory", column: int) -> None:
    # Steps, as a controller holds its output; dots where the model was not trained.
    assert path.inputs is not None
    values = path.inputs[:, column]
    axes.plot(*style.thin_line(time, values), color=style.GREY, lw=0.9, drawstyle="steps-post")
    if path.input_extrapolates is not None and path.input_extrapolates[:, column].any():
        marked = path.input_extrapolates[:, column]
        axes.plot(*style.thin_line(time[marked], values[marked]), color=style.ALERT, marker=".", ms=2, lw=0)
    axes.set_ylabel(path.input_names[column], rotation=0, ha="right", va="center", fontsize=8)
    axes.tick_params(labelsize=7)


def _draw_output(axes: Axes, time: np.ndarray, path: "Trajectory", column: int, measured: np.ndarray | None) -> None:
    if path.std is not None:
        draw_band(axes, time, path, column)
    if path.samples is not None:
        for number, sample in enumerate(path.samples[:MAX_SAMPLES]):
            label = "samples" if number == 0 else None
            axes.plot(*style.thin_line(time, sample[:, column]), color=style.MODEL, lw=0.4, alpha=0.35, label=label)
    axes.plot(*style.thin_line(time, path.mean[:, column]), color=style.MODEL, lw=1.8, label="model")
    if measured is not None:
        draw_measured(axes, time, measured[:, column])
    if path.extrapolates is not None and path.extrapolates.any():
        shade_extrapolation(axes, time, path.extrapolates)
    axes.set_ylabel(path.output_names[column])


def _draw_others(axes: Axes, time: np.ndarray, others: Mapping[str, "Trajectory"], column: int) -> None:
    low, high = axes.get_ylim()
    margin = OTHERS_MARGIN * (high - low)
    for number, (name, other) in enumerate(others.items()):
        line = style.thin_line(time, other.mean[:, column])
        axes.plot(*line, color=style.OTHERS[number % len(style.OTHERS)], lw=0.9, label=name)
    lowest, highest = axes.get_ylim()
    axes.set_ylim(max(lowest, low - margin), min(highest, high + margin))


def _draw_error(axes: Axes, time: np.ndarray, path: "Trajectory", column: int, measured: np.ndarray) -> None:
    if path.std is not None:
        half = path.interval(0.95)[1][:, column] - path.mean[:, column]
        axes.fill_between(*style.thin_band(time, -half, half), color=style.BAND, lw=0)
    axes.axhline(0.0, color=style.GREY, lw=0.6)
    axes.plot(*style.thin_line(time, measured - path.mean[:, column]), color=style.MEASURED, lw=0.8)
    axes.set_ylabel("error", fontsize=8)
    axes.tick_params(labelsize=7)


def _shade_settling(panels: Iterable[Axes], time: np.ndarray, path: "Trajectory") -> bool:
    # The rows of a cold run that scores leave out, if there are any.
    shaded = 0 < path.skip < len(path)
    for axes in panels if shaded else ():
        axes.axvspan(time[0], time[path.skip], color=style.SETTLING, lw=0, zorder=0)
    return shaded


def shade_extrapolation(axes: Axes, time: np.ndarray, rows: np.ndarray) -> None:
    """Rows outside of the training range, and a line at the first: from there on the states have a past that is new."""
    axes.fill_between(
        time, 0.0, 1.0, where=rows.tolist(), transform=axes.get_xaxis_transform(), color=style.ALERT, alpha=0.12, lw=0,
        step="post", label="outside of the training range",
    )  # fmt: skip
    axes.axvline(time[np.argmax(rows)], color=style.ALERT, lw=0.8, ls="--")


def _check_others(path: "Trajectory", others: Mapping[str, "Trajectory"]) -> None:
    for name, other in others.items():
        if other.mean.shape != path.mean.shape:
            raise InputError(
                f"{name!r} of others has shape {other.mean.shape}, but the trajectory has {path.mean.shape}; simulate "
                "the same rows"
            )


def _check_measured(path: "Trajectory", measured: ArrayLike) -> np.ndarray:
    values = as_matrix("measured", measured, gaps=True, columns=path.output_names)
    if values.shape != path.mean.shape:
        raise InputError(
            f"measured has shape {values.shape}, but the trajectory has {path.mean.shape}; pass the same rows"
        )
    if not same_labels(path.index, row_index(measured)):
        raise InputError("measured has other row labels than the inputs of the simulation; align them first")
    return values
