"""Figures of a comparison: simulations, a panel per model, and the reliability of their bands, a row per model."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, PercentFormatter, ScalarFormatter
from scipy.stats import binom

from revarb.analysis.reliability import BandCheck, ErrorByHorizon, Reliability
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.data.trajectory_figure import draw_band, draw_measured
from revarb.runtime.figure_style import (
    GREY,
    MEASURED,
    MODEL,
    AnyFigure,
    add_panels,
    find_root,
    finish_figure,
    name_time,
    start_figure,
    thin_line,
)

PIT_BINS = 10
CHANCE = "#e6e6e6"
HIGHEST_ERROR = 1.6  # in std of the measured output: a model that diverges must not flatten the others


@rc_context({"text.parse_math": False})  # a column may be named a$b$
def draw_comparison(
    paths: Mapping[str, Sequence[Trajectory]], record: Series, column: int, given: AnyFigure | None = None
) -> Figure:
    """One output as every model simulates a record, a panel each, over the measured output.

    `paths` has a model's simulations by its methods. The first (mean-only) is the solid line, a later one is dashed,
    and the one with a band gives the band.
    """
    figure = start_figure(given, 10.0, 0.7 + 1.5 * len(paths))
    first = next(iter(paths.values()))[0]
    measured, time = record.y, record.start_time + np.arange(len(record)) * record.dt
    panels = add_panels(figure, len(paths), time=name_time(record.dt, record.time_name))
    for axes, (model, several) in zip(panels, paths.items(), strict=True):
        for path in several:
            if path.std is not None:
                draw_band(axes, time, path, column)
        draw_measured(axes, time, measured[:, column])
        for path in several[1:]:
            dashed = {"color": MODEL, "lw": 1.0, "ls": "--", "label": f"simulated ({path.method})"}
            axes.plot(*thin_line(time, path.mean[:, column]), **dashed)
        axes.plot(*thin_line(time, several[0].mean[:, column]), color=MODEL, lw=1.4, label="simulated (mean-only)")
        axes.set_title(model, loc="left", fontsize=9, fontweight="bold")
        axes.set_ylabel(first.output_names[column], fontsize=8)
        _limit_axis(axes, measured[:, column])
    finish_figure(figure, "", panels)
    return find_root(figure)


def _limit_axis(axes: Axes, measured: np.ndarray) -> None:
    # By the measured output: a model that diverges must not flatten the others.
    if np.isnan(measured).all():
        return
    low, high = float(np.nanmin(measured)), float(np.nanmax(measured))
    margin = 0.35 * (high - low) or 1.0
    axes.set_ylim(low - margin, high + margin)


@rc_context({"text.parse_math": False, "font.size": 9})
def draw_reliability(reliability: Mapping[tuple[str, str], BandCheck]) -> Figure:
    """A row per (model, method): reliability diagram, PIT values, and error beside predicted standard deviation.

    Grey is where reliable bands stay 95 % of the time if the errors of all measurements are independent.
    """
    figure = Figure(figsize=(10, 0.8 + 1.75 * len(reliability)), layout="constrained")
    panels = figure.subplots(len(reliability), 3, sharex="col", squeeze=False)
    errors = [values for each in reliability.values() for values in (each.horizon.error, each.horizon.predicted)]
    highest = 1.05 * min(float(np.concatenate(errors).max()), HIGHEST_ERROR)
    for (inside, place, horizon), ((model, method), each) in zip(panels, reliability.items(), strict=True):
        _draw_reliability(inside, each.reliability)
        _draw_pit(place, each.pit)
        _draw_horizon(horizon, each.horizon, each.skip)
        horizon.set_ylim(0.0, highest)
        horizon.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        inside.set_title(f"{model} ({method})", loc="left", fontsize=9, fontweight="bold")
    _label(panels)
    return figure


def _draw_reliability(axes: Axes, shares: Reliability) -> None:
    levels = np.linspace(0.0, 1.0, 101)
    low, high = _chance(shares.count, levels)
    axes.fill_between(levels, low, high, color=CHANCE, lw=0)
    axes.plot([0.0, 1.0], [0.0, 1.0], color=GREY, lw=0.8)
    axes.plot(shares.levels, shares.observed, color=MODEL, lw=1.4, marker="o", ms=2.5)
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.03), yticks=np.linspace(0.0, 1.0, 5), ylabel="inside the band")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))


def _draw_pit(axes: Axes, values: np.ndarray) -> None:
    counts, edges = np.histogram(values, PIT_BINS, (0.0, 1.0))
    low, high = _chance(len(values), np.array([1.0 / PIT_BINS]))
    axes.axhspan(float(low[0]), float(high[0]), color=CHANCE, lw=0, label="reliable bands, 95 % of the time")
    axes.axhline(1.0 / PIT_BINS, color=GREY, lw=0.8)
    axes.stairs(counts / len(values), edges, color=MODEL, lw=1.4)
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, max(0.25, 1.1 * counts.max() / len(values))), ylabel="measurements")
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _draw_horizon(axes: Axes, horizon: ErrorByHorizon, skip: int) -> None:
    axes.plot(horizon.steps, horizon.error, color=MEASURED, lw=1.3, marker="o", ms=2.5, label="error")
    axes.plot(horizon.steps, horizon.predicted, color=MODEL, lw=1.3, ls="--", label="predicted std")
    if skip > 0:
        axes.axvline(skip + 0.5, color=GREY, lw=0.8, ls=":", label="scored from here")
    axes.set(xscale="log", ylabel="in std of the output")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(ScalarFormatter())


def _chance(count: int, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Exact: the middle 95 % of the binomial distribution.
    return binom.ppf(0.025, count, shares) / count, binom.ppf(0.975, count, shares) / count


def _label(panels: np.ndarray) -> None:
    below = ("nominal level of the band", "PIT: place in the predicted distribution", "steps since the start")
    for axes in panels.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        axes.yaxis.label.set_size(8)
    for axes, label in zip(panels[-1], below, strict=True):
        axes.set_xlabel(label)
    first = panels[0, 0]
    first.text(0.98, 0.05, "bands too narrow", transform=first.transAxes, ha="right", color=GREY, fontsize=8)
    first.text(0.02, 0.9, "bands too wide", transform=first.transAxes, color=GREY, fontsize=8)
    above = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "fontsize": 8, "frameon": False, "handlelength": 1.6}
    panels[0, 1].legend(**above)
    panels[0, 2].legend(**above, ncols=3, columnspacing=1.0)
