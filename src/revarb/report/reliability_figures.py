"""Figure of the reliability of bands: one row of panels per model."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, PercentFormatter, ScalarFormatter
from scipy.stats import binom

from revarb.evaluation.reliability import BandCheck, ErrorByHorizon, Reliability
from revarb.runtime.figure_style import GREY, MEASURED, MODEL

PIT_BINS = 10
CHANCE = "#e6e6e6"
HIGHEST_ERROR = 1.6
"""In standard deviations of the measured output: a model that diverges must not flatten the others."""


@rc_context({"text.parse_math": False, "font.size": 9})
def draw_reliability(reliability: Mapping[tuple[str, str], BandCheck]) -> Figure:
    """A row per (model, method): reliability diagram, PIT values, and error beside predicted standard deviation.

    Grey is where reliable bands stay 95 % of the time if the errors of all measurements are independent.
    """
    figure = Figure(figsize=(10, 0.8 + 1.75 * len(reliability)), layout="constrained")
    panels = figure.subplots(len(reliability), 3, sharex="col", squeeze=False)
    highest = _highest_error([each.horizon for each in reliability.values()])
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
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.03)
    axes.set_yticks(np.linspace(0.0, 1.0, 5))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))


def _draw_pit(axes: Axes, values: np.ndarray) -> None:
    counts, edges = np.histogram(values, PIT_BINS, (0.0, 1.0))
    low, high = _chance(len(values), np.array([1.0 / PIT_BINS]))
    axes.axhspan(float(low[0]), float(high[0]), color=CHANCE, lw=0, label="reliable bands, 95 % of the time")
    axes.axhline(1.0 / PIT_BINS, color=GREY, lw=0.8)
    axes.stairs(counts / len(values), edges, color=MODEL, lw=1.4)
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, max(0.25, 1.1 * counts.max() / len(values)))
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _draw_horizon(axes: Axes, horizon: ErrorByHorizon, skip: int) -> None:
    axes.plot(horizon.steps, horizon.error, color=MEASURED, lw=1.3, marker="o", ms=2.5, label="error")
    axes.plot(horizon.steps, horizon.predicted, color=MODEL, lw=1.3, ls="--", label="predicted std")
    if skip > 0:
        axes.axvline(skip + 0.5, color=GREY, lw=0.8, ls=":", label="scored from here")
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(ScalarFormatter())


def _chance(count: int, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Exact: the middle 95 % of the binomial distribution.
    return binom.ppf(0.025, count, shares) / count, binom.ppf(0.975, count, shares) / count


def _highest_error(horizons: Sequence[ErrorByHorizon]) -> float:
    drawn = np.concatenate([np.concatenate([each.error, each.predicted]) for each in horizons])
    return float(1.05 * np.min([drawn.max(), HIGHEST_ERROR]))


def _label(panels: np.ndarray) -> None:
    below = ("nominal level of the band", "PIT: place in the predicted distribution", "steps since the start")
    beside = ("inside the band", "measurements", "in std of the output")
    for row in panels:
        for axes, label in zip(row, beside, strict=True):
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(labelsize=8)
            axes.set_ylabel(label, fontsize=8)
    for axes, label in zip(panels[-1], below, strict=True):
        axes.set_xlabel(label)
    first = panels[0, 0]
    first.text(0.98, 0.05, "bands too narrow", transform=first.transAxes, ha="right", color=GREY, fontsize=8)
    first.text(0.02, 0.9, "bands too wide", transform=first.transAxes, color=GREY, fontsize=8)
    above = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "fontsize": 8, "frameon": False, "handlelength": 1.6}
    panels[0, 1].legend(**above)
    panels[0, 2].legend(**above, ncols=3, columnspacing=1.0)
