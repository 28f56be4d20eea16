"""Figures of a model: the errors of candidates; outputs, latent paths and the bound of a fit; free runs.

They draw arrays and trajectories, and know no models.
"""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.trajectory_figure import draw_measured
from revarb.models.recipe import Step
from revarb.runtime.figure_style import (
    ALERT,
    BAND,
    GREY,
    MEASURED,
    MODEL,
    OTHERS,
    AnyFigure,
    add_panels,
    check_axes,
    find_root,
    finish_figure,
    name_time,
    start_figure,
    thin_band,
    thin_line,
)

WIDTH = 70  # characters of a line below the axis
LIMITS = (1e-12, 1e12)  # of what is drawn: a model file may have any numbers


def draw_errors(groups: Mapping[str, Sequence[Any]], title: str, scored_by: str, given: Axes | None) -> Figure:
    """Draw held-out errors below each other, best first, on a logarithmic axis; the groups by their labels.

    Each entry of a group has `name`, `error` and `standard_error`; those without an error are left out. Into given
    axes, without the title, and with the sizes that they have.
    """
    drawn = [(each, label) for label, group in groups.items() for each in group if each.error]
    drawn.sort(key=lambda pair: pair[0].error, reverse=True)
    if given is None:
        figure = start_figure(None, 9.0, 1.6 + 0.22 * len(drawn))
        axes = figure.subplots()
    else:
        [axes] = check_axes(given, 1)
        figure = axes.figure
    for group, colour in zip(groups, (MODEL, OTHERS[0], MEASURED, GREY), strict=True):
        rows = [row for row, pair in enumerate(drawn) if pair[1] == group]
        if rows:
            _draw_points(axes, rows, [drawn[row][0] for row in rows], colour, group)
    axes.set_xscale("log")
    axes.set_yticks(range(len(drawn)), [each.name for each, _ in drawn])
    by = textwrap.fill(textwrap.shorten(scored_by, 2 * WIDTH, placeholder=" …"), WIDTH)
    axes.set_xlabel(f"held-out error, in standard deviations of the output\n{by}")
    _set_ticks(axes)
    if given is None:
        axes.tick_params(axis="y", labelsize=8)
        axes.xaxis.label.set_fontsize(9)
        axes.grid(axis="x", color="#e8e8e8", linewidth=0.6)
        finish_figure(figure, title, [axes])
    else:
        axes.legend()
    return find_root(figure)


def _draw_points(axes: Axes, rows: list[int], group: list[Any], colour: str, label: str) -> None:
    errors = np.clip(np.array([each.error for each in group], dtype=np.float64), *LIMITS)
    spread = np.clip(np.exp(np.minimum([each.standard_error or 0.0 for each in group], 100.0)), 1.0, LIMITS[1])
    axes.errorbar(
        errors, rows, xerr=[errors - errors / spread, errors * spread - errors], fmt="o", markersize=4,
        color=colour, linewidth=1.0, label=label,
    )  # fmt: skip


def _set_ticks(axes: Axes) -> None:
    # Plain numbers: evenly spaced where the errors are close, else 1, 2 and 5 of every power of ten, or powers alone.
    low, high = axes.get_xlim()
    if high < 4.0 * low:
        locator: MaxNLocator | LogLocator = MaxNLocator(6)
    else:
        locator = LogLocator(subs=(1.0, 2.0, 5.0) if high < 1e3 * low else (1.0,))
    ticks = [tick for tick in locator.tick_values(low, high) if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:.12g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


class TimeLine:
    """Records on one axis of time, each from its row `first`; lines end where a record ends.

    They are at the times that they `start` at, or where these overlap, as those of several files can, one after the
    other. `column` is the name of their column of times.
    """

    def __init__(
        self, lengths: Sequence[int], first: int, dt: float, starts: Sequence[float] = (0.0,), column: str | None = None
    ):
        self.lengths, self.label = lengths, name_time(dt, column)
        self.time = starts[0] + (first + np.arange(sum(lengths))) * dt
        if len(starts) == len(lengths):
            own = np.concatenate([
                start + (first + np.arange(length)) * dt for start, length in zip(starts, lengths, strict=True)
            ])  # fmt: skip
            self.time = own if (np.diff(own) > 0.0).all() else self.time
        self.seams = np.cumsum(lengths)[:-1]

    @classmethod
    def of_records(cls, records: Sequence[Series], first: int = 0) -> "TimeLine":
        """The time of training records, without their first rows."""
        lengths = [len(record) - first for record in records]
        return cls(lengths, first, records[0].dt, [record.start_time for record in records], records[0].time_name)

    def split(self, rows: np.ndarray) -> np.ndarray:
        """Rows of all records, with NaN between two records."""
        return np.insert(rows, self.seams, np.nan, axis=0)

    def join(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """The parts of all records as `split` rows; a part that begins later than its record has NaN before it."""
        padded = [
            np.pad(part, ((length - len(part), 0), (0, 0)), constant_values=np.nan)
            for part, length in zip(parts, self.lengths, strict=True)
        ]
        return self.split(np.concatenate(padded))

    def find(self, record: int, row: int) -> float:
        """The time of a row of a record."""
        return float(self.time[sum(self.lengths[:record]) + row])


@rc_context({"text.parse_math": False})  # a column may be named a$b$
def draw_fit(
    line: TimeLine,
    fitted: Sequence[Trajectory],
    measured: Sequence[np.ndarray] | None,
    outliers: Sequence[tuple[int, int, int]],
    latent: Sequence[tuple[np.ndarray, np.ndarray]],
    history: Sequence[Step],
    title: str,
    maximised: str,
    given: AnyFigure | None,
) -> Figure:
    """Outputs as fitted, then the latent path of every hidden layer, then the curve of what was `maximised`.

    Records stand one after the other, with a thin line between them. Where an output is missing its band is drawn.
    Outliers are given by record, row and output.
    """
    outputs = len(fitted[0].output_names)
    figure = start_figure(given, 10.0, 1.4 + 1.9 * (outputs + len(latent) + 1))
    axes = add_panels(figure, outputs + len(latent) + 1, share=False)
    _draw_outputs(axes[:outputs], line, fitted, measured, "fitted")
    if measured is not None:
        _draw_outliers(axes, line, measured, outliers)
    for number, (panel, (mean, std)) in enumerate(zip(axes[outputs:-1], latent, strict=True), start=1):
        _draw_latent(panel, line.split(mean), line.split(std), line.split(line.time))
        panel.set_ylabel(f"layer {number}: state")
    _draw_seams(axes[:-1], line)
    axes[-2].set_xlabel(line.label)
    _draw_bound(axes[-1], history)
    axes[-1].set_ylabel(maximised)
    finish_figure(figure, title, axes)
    return find_root(figure)


@rc_context({"text.parse_math": False})
def draw_free_runs(
    line: TimeLine, paths: Sequence[Trajectory], measured: Sequence[np.ndarray], title: str, given: AnyFigure | None
) -> Figure:
    """The measured outputs of records and free runs over them, one panel per output."""
    outputs = len(paths[0].output_names)
    figure = start_figure(given, 10.0, 1.4 + 1.9 * outputs)
    axes = add_panels(figure, outputs, time=line.label)
    _draw_outputs(axes, line, paths, measured, "free run")
    _draw_seams(axes, line)
    finish_figure(figure, title, axes)
    return find_root(figure)


def _draw_seams(panels: Iterable[Axes], line: TimeLine) -> None:
    for panel in panels:
        for seam in line.time[line.seams]:
            panel.axvline(seam, color=GREY, lw=0.6)


def _draw_outputs(
    panels: Iterable[Axes],
    line: TimeLine,
    paths: Sequence[Trajectory],
    measured: Sequence[np.ndarray] | None,
    label: str,
) -> None:
    time, mean = line.split(line.time), line.join([path.mean for path in paths])
    known = None if measured is None else line.join(measured)
    lower, upper = (line.join(ends) for ends in zip(*(path.interval(0.95) for path in paths), strict=True))
    for column, axes in enumerate(panels):
        if known is not None:
            _draw_gaps(axes, time, known[:, column], lower[:, column], upper[:, column])
            draw_measured(axes, time, known[:, column])
        axes.plot(*thin_line(time, mean[:, column]), color=MODEL, lw=1.8, label=label)
        axes.set_ylabel(paths[0].output_names[column])


def _draw_outliers(
    panels: Any, line: TimeLine, measured: Sequence[np.ndarray], outliers: Sequence[tuple[int, int, int]]
) -> None:
    for column in sorted({column for _, _, column in outliers}):
        found = [(line.find(record, row), measured[record][row, column]) for record, row, c in outliers if c == column]
        panels[column].plot(*zip(*found, strict=True), "x", color=ALERT, ms=5, lw=0, label="outlier", zorder=4)


def _draw_gaps(axes: Axes, time: np.ndarray, measured: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
    gap = np.isnan(measured) & np.isfinite(lower)
    if gap.any():
        reach = gap | np.append(gap[1:], False) | np.append(False, gap[:-1])  # from the last value to the next
        axes.fill_between(time, lower, upper, where=reach, color=BAND, lw=0, label="95 % band, not measured")


def _draw_latent(axes: Axes, mean: np.ndarray, std: np.ndarray, time: np.ndarray) -> None:
    for column in range(mean.shape[1]):
        line = axes.plot(*thin_line(time, mean[:, column]), lw=1.0)[0]
        low, high = mean[:, column] - 1.96 * std[:, column], mean[:, column] + 1.96 * std[:, column]
        axes.fill_between(*thin_band(time, low, high), alpha=0.25, lw=0, color=line.get_color())


def _draw_bound(axes: Axes, history: Sequence[Step]) -> None:
    bounds = np.array([step.bound for step in history])
    axes.plot(np.arange(1, len(bounds) + 1), bounds, color=MEASURED, lw=1.2)
    low, high = bounds[len(bounds) // 5 :].min(initial=np.inf), bounds.max(initial=-np.inf)
    if bounds.min(initial=np.inf) < low < high:  # zoomed into where it still moves; the first fifth rises out of sight
        axes.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    axes.set_xlabel("iteration")
