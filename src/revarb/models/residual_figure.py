"""Figure of a residual analysis: a row of panels per output."""

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from revarb.errors import shorten
from revarb.models.residuals import ONE_LAG, Residuals
from revarb.runtime.figure_style import GREY, MEASURED, MODEL

MOST_INPUTS = 6  # panels in a row; those with the largest correlations are drawn
CHANCE = "#e6e6e6"
MAX_BINS = 40
PANEL_WIDTH, PANEL_HEIGHT, LEAST_WIDTH = 2.1, 1.45, 9.0  # inches
LETTERS_PER_INCH, MOST_LINES = 15, 6  # of the title


@rc_context({"text.parse_math": False, "font.size": 8})  # a column may be named a$b$
def draw_residuals(residuals: Residuals, title: str, rows: Sequence[int]) -> Figure:
    """Autocorrelation, cross-correlation with every input, and histogram of some outputs (by their numbers)."""
    inputs = _choose_inputs(residuals, rows)
    width = max(LEAST_WIDTH, PANEL_WIDTH * (len(inputs) + 2))
    lines = _wrap_title(title or residuals.sentence, width)
    height = 0.9 + 0.17 * len(lines) + PANEL_HEIGHT * len(rows)
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(len(rows), len(inputs) + 2, sharex=False, squeeze=False)
    for line, row in zip(panels, rows, strict=True):
        _draw_row(line, residuals, row, inputs)
    _label(panels, residuals, rows, inputs)
    figure.suptitle("\n".join(lines), fontsize=9, x=0.01, ha="left")
    handles = dict(zip(*reversed(panels[0, 0].get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return figure


def _choose_inputs(residuals: Residuals, rows: Sequence[int]) -> list[int]:
    names = residuals.input_names
    peaks = [residuals.cross_correlation_peaks[row] for row in rows]
    largest = [max((each[name].ratio for each in peaks if name in each), default=0.0) for name in names]
    return sorted(np.argsort(-np.array(largest), kind="stable")[:MOST_INPUTS].tolist())


def _draw_row(panels: np.ndarray, residuals: Residuals, row: int, inputs: Sequence[int]) -> None:
    own, lags = residuals.autocorrelation[1:, row], np.arange(1, residuals.max_lag + 1)
    highest = _find_height(residuals, row, inputs)
    _draw_correlation(panels[0], lags, own, residuals.autocorrelation_band[1:, row], residuals)
    for axes, column in zip(panels[1:-1], inputs, strict=True):
        values, band = (
            each[:, row, column] for each in (residuals.cross_correlation, residuals.cross_correlation_band)
        )
        axes.axvline(0.0, color=GREY, lw=0.6, ls=":")
        _draw_correlation(axes, residuals.cross_lags, values, band, residuals)
    for axes in panels[:-1]:
        axes.set_ylim(-highest, highest)
    _draw_histogram(panels[-1], residuals.errors[:, row])


def _find_height(residuals: Residuals, row: int, inputs: Sequence[int]) -> float:
    # One scale for the row, so that its panels can be compared.
    drawn = [
        residuals.autocorrelation[1:, row],
        residuals.joint_factor * residuals.autocorrelation_std[1:, row],
        residuals.cross_correlation[:, row, inputs],
        residuals.joint_factor * residuals.cross_correlation_std[:, row, inputs],
    ]
    largest = max(np.nanmax(np.abs(values), initial=0.0) for values in drawn)
    return 1.1 * min(float(largest), 1.0)


def _draw_correlation(axes: Axes, lags: np.ndarray, values: np.ndarray, band: np.ndarray, residuals: Residuals) -> None:
    limit = band * residuals.joint_factor / ONE_LAG
    beyond = np.abs(values) > limit
    axes.fill_between(
        lags, -band, band, color=CHANCE, lw=0, step="mid", label="95 % of single lags, if nothing is left"
    )
    for sign in (-1.0, 1.0):
        axes.plot(lags, sign * limit, color=GREY, lw=0.8, ls="--", label="95 % of all lags together")
    axes.axhline(0.0, color=GREY, lw=0.6)
    axes.vlines(lags[~beyond], 0.0, values[~beyond], color=MEASURED, lw=1.2, label="correlation")
    axes.vlines(lags[beyond], 0.0, values[beyond], color=MODEL, lw=1.6, label="beyond the limit")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    if np.isnan(values).all():
        axes.text(0.5, 0.9, "nothing to correlate", transform=axes.transAxes, ha="center", va="top", color=GREY)


def _draw_histogram(axes: Axes, errors: np.ndarray) -> None:
    measured = errors[np.isfinite(errors)]
    axes.set_yticks([])
    axes.xaxis.set_major_locator(MaxNLocator(3))
    if len(measured) < 2 or not np.ptp(measured) > 0.0:
        return
    bins = int(np.clip(np.sqrt(len(measured)), 8, MAX_BINS))
    axes.hist(measured, bins, density=True, color="#cfcfcf", edgecolor="white", lw=0.3)
    mean, spread = measured.mean(), measured.std()
    place = np.linspace(mean - 3.5 * spread, mean + 3.5 * spread, 141)
    density = np.exp(-0.5 * ((place - mean) / spread) ** 2) / (np.sqrt(2.0 * np.pi) * spread)
    axes.plot(place, density, color=MODEL, lw=1.1)


def _label(panels: np.ndarray, residuals: Residuals, rows: Sequence[int], inputs: Sequence[int]) -> None:
    crossed = [f"with {shorten(residuals.input_names[column], 24)}" for column in inputs]
    for axes, head in zip(panels[0], ["autocorrelation", *crossed, "histogram, normal density"], strict=True):
        axes.set_title(head, fontsize=8, fontweight="bold", loc="left")
    for line, row in zip(panels, rows, strict=True):
        line[0].set_ylabel(shorten(residuals.output_names[row], 18), fontsize=8)
        for axes in line:
            axes.spines[["top", "right"]].set_visible(False)
            axes.tick_params(labelsize=7)
        for axes in line[1:-1]:
            axes.tick_params(labelleft=False)  # the scale of the row
    for axes in panels[:-1, :-1].flat:
        axes.tick_params(labelbottom=False)
    for axes, label in zip(panels[-1], ["lag", *["lag (> 0: input earlier)"] * len(inputs), "error"], strict=True):
        axes.set_xlabel(label, fontsize=8)


def _wrap_title(title: str, width: float) -> list[str]:
    lines = textwrap.wrap(title, int(LETTERS_PER_INCH * width)) or [""]
    return lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], f"{lines[MOST_LINES - 1]} …"]
