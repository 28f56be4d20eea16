"""Figures of the analyses of a model: residuals, linearisation, step and frequency response, static gain curve."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from revarb.data.trajectory_figure import draw_band, shade_extrapolation
from revarb.errors import shorten
from revarb.models.residual_findings import ONE_LAG
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
)

if TYPE_CHECKING:
    from revarb.models.linearisation import Linearisation
    from revarb.models.residuals import Residuals
    from revarb.models.responses import FrequencyResponse, StaticGainCurve, StepResponse

MOST_INPUTS = 6  # panels of a residual analysis in a row; those with the largest correlations are drawn
PANEL_WIDTH, PANEL_HEIGHT, LEAST_WIDTH = 2.1, 1.45, 9.0  # inches
LETTERS_PER_INCH, MOST_LINES = 15, 6  # of its title
MAX_BINS = 40
COLOURS = (MODEL, "#0072b2", "#009e73", "#e69f00", "#cc79a7", MEASURED)  # told apart by colour-blind readers too
GRID = {"color": "#e8e8e8", "lw": 0.6}
BEFORE = 0.08  # share of the time axis before a step
LEAST_STEPS, MOST_STEPS = 15, 300  # of the responses beside the poles
SETTLED = 1e-3  # they end where the slowest pole has decayed to this


def draw_residuals(residuals: "Residuals", title: str, rows: Sequence[int], given: AnyFigure | None) -> Figure:
    """Autocorrelation, cross-correlation with every input, and histogram of some outputs (by their numbers)."""
    with rc_context({"text.parse_math": False}), rc_context({"font.size": 8} if given is None else {}):
        return _draw_residuals(residuals, title, rows, given)


def _draw_residuals(residuals: "Residuals", title: str, rows: Sequence[int], given: AnyFigure | None) -> Figure:
    inputs = _choose_inputs(residuals, rows)
    width = max(LEAST_WIDTH, PANEL_WIDTH * (len(inputs) + 2))
    text = title or residuals.sentence
    lines = textwrap.wrap(text, int(LETTERS_PER_INCH * width), max_lines=MOST_LINES, placeholder=" …")
    figure = start_figure(given, width, 0.9 + 0.17 * len(lines) + PANEL_HEIGHT * len(rows))
    panels = figure.subplots(len(rows), len(inputs) + 2, squeeze=False)
    for line, row in zip(panels, rows, strict=True):
        _draw_residual_row(line, residuals, row, inputs)
    crossed = [f"with {shorten(residuals.input_names[column], 24)}" for column in inputs]
    for axes, head in zip(panels[0], ["autocorrelation", *crossed, "histogram, normal density"], strict=True):
        axes.set_title(head, fontsize=8, fontweight="bold", loc="left")
    for axes, label in zip(panels[-1], ["lag", *["lag (> 0: input earlier)"] * len(inputs), "error"], strict=True):
        axes.set_xlabel(label)
    figure.suptitle("\n".join(lines), fontsize=9, x=0.01, ha="left")
    handles = dict(zip(*reversed(panels[0, 0].get_legend_handles_labels()), strict=True))
    place = "outside lower center" if given is None else "lower center"  # outside needs a constrained layout
    figure.legend(handles.values(), handles.keys(), loc=place, ncols=4, fontsize=8, frameon=False)
    return find_root(figure)


def _choose_inputs(residuals: "Residuals", rows: Sequence[int]) -> list[int]:
    peaks = [residuals.cross_correlation_peaks[row] for row in rows]
    largest = [max((each[name].ratio for each in peaks if name in each), default=0.0) for name in residuals.input_names]
    return sorted(np.argsort(-np.array(largest), kind="stable")[:MOST_INPUTS].tolist())


def _draw_residual_row(panels: np.ndarray, residuals: "Residuals", row: int, inputs: Sequence[int]) -> None:
    factor, lags = residuals.joint_factor, np.arange(1, residuals.max_lag + 1)
    own, crossed = residuals.autocorrelation, residuals.cross_correlation
    _draw_correlation(panels[0], lags, own[1:, row], residuals.autocorrelation_std[1:, row], factor)
    for axes, column in zip(panels[1:-1], inputs, strict=True):
        axes.sharey(panels[0])  # so that the panels of a row can be compared
        axes.tick_params(labelleft=False)
        axes.axvline(0.0, color=GREY, lw=0.6, ls=":")
        std = residuals.cross_correlation_std[:, row, column]
        _draw_correlation(axes, residuals.cross_lags, crossed[:, row, column], std, factor)
    _draw_histogram(panels[-1], residuals.errors[:, row])
    panels[0].set_ylabel(shorten(residuals.output_names[row], 18))
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=7)


def _draw_correlation(axes: Axes, lags: np.ndarray, values: np.ndarray, std: np.ndarray, factor: float) -> None:
    band, limit = ONE_LAG * std, factor * std
    beyond = np.abs(values) > limit
    label = "95 % of single lags, if nothing is left"
    axes.fill_between(lags, -band, band, color="#e6e6e6", lw=0, step="mid", label=label)
    for sign in (-1.0, 1.0):
        axes.plot(lags, sign * limit, color=GREY, lw=0.8, ls="--", label="95 % of all lags together")
    axes.axhline(0.0, color=GREY, lw=0.6)
    axes.vlines(lags[~beyond], 0.0, values[~beyond], color=MEASURED, lw=1.2, label="correlation")
    axes.vlines(lags[beyond], 0.0, values[beyond], color=MODEL, lw=1.6, label="beyond the limit")
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
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


@rc_context({"text.parse_math": False})
def draw_linearisation(linear: "Linearisation", given: AnyFigure | None) -> Figure:
    """Responses to unit steps, a panel per output, and to the right the poles in the unit circle."""
    outputs, inputs = linear.D.shape
    figure = start_figure(given, 10.0, max(4.2, 1.2 + 1.6 * outputs))
    grid = figure.add_gridspec(outputs, 2, width_ratios=(1.4, 1.0))
    largest = float(np.abs(linear.poles).max(initial=0.0))
    decay = np.log(SETTLED) / np.log(largest) if 0.0 < largest < 1.0 else 0.0
    rows = int(np.clip(np.ceil(decay), LEAST_STEPS, MOST_STEPS))
    responses, time = linear.step(rows), np.arange(rows) * linear.dt
    panels = [figure.add_subplot(grid[row, 0]) for row in range(outputs)]
    for row, axes in enumerate(panels):
        axes.axhline(0.0, color=GREY, lw=0.6)
        for column in range(inputs):
            colour, label = COLOURS[column % len(COLOURS)], f"step of {linear.input_names[column]} by 1"
            axes.step(time, responses[:, row, column], color=colour, lw=1.4, where="post", label=label)
        axes.set(ylabel=f"Δ {linear.output_names[row]}", xlabel=name_time(linear.dt))
        axes.label_outer()
    panels.append(figure.add_subplot(grid[:, 1]))
    _draw_poles(panels[-1], linear.poles)
    finish_figure(figure, f"Linearised at {linear.point}", panels)
    return find_root(figure)


def _draw_poles(axes: Axes, poles: np.ndarray) -> None:
    angle = np.linspace(0.0, 2.0 * np.pi, 200)
    axes.plot(np.cos(angle), np.sin(angle), color=GREY, lw=0.8)
    axes.axhline(0.0, color=GREY, lw=0.5)
    axes.axvline(0.0, color=GREY, lw=0.5)
    moving = np.abs(poles) > 1e-6
    axes.plot(np.real(poles[moving]), np.imag(poles[moving]), "x", color=MODEL, ms=7, mew=1.6)
    if not moving.all():
        axes.plot([0.0], [0.0], "x", color=GREY, ms=7, mew=1.6)
        axes.annotate(f"{int((~moving).sum())} delays", (0.0, 0.0), (6, 6), textcoords="offset points", fontsize=8)
    reach = 1.1 * max(1.0, float(np.abs(poles).max(initial=0.0)))
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="real part", ylabel="imaginary part")


@rc_context({"text.parse_math": False})
def draw_step_response(response: "StepResponse", given: AnyFigure | None) -> Figure:
    """The input that steps, then every output from a little before the step."""
    path = response.path
    heights = [0.7, *[2.2] * len(path.output_names)]
    figure = start_figure(given, 10.0, 1.2 + sum(heights))
    panels = add_panels(figure, len(heights), heights=heights, time=f"{name_time(path.dt)}, from the step")
    before = -max(BEFORE * response.time[-1], path.dt)
    value = response.point.inputs[path.input_names.index(response.input_name)]
    steps = [value, value + response.size, value + response.size]
    panels[0].plot([before, 0.0, response.time[-1]], steps, color=GREY, lw=1.2, drawstyle="steps-post")
    panels[0].set_ylabel(response.input_name, rotation=0, ha="right", va="center", fontsize=8)
    panels[0].tick_params(labelsize=7)
    for column, axes in enumerate(panels[1:]):
        _draw_response(axes, response, column, before)
    gains = ", ".join(f"{gain:.3g}" for gain in response.gain)
    finish_figure(
        figure, f"{response.input_name} steps by {response.size:.3g} at {response.point}: gain {gains}", panels
    )
    return find_root(figure)


def _draw_response(axes: Axes, response: "StepResponse", column: int, before: float) -> None:
    path, start, final = response.path, response.point.outputs[column], response.final[column]
    if path.std is not None:
        draw_band(axes, response.time, path, column)
    if path.extrapolates is not None and path.extrapolates.any():
        shade_extrapolation(axes, response.time, path.extrapolates)
    axes.axhline(start, color=GREY, lw=0.8, ls=":", label="before the step")
    axes.axhline(final, color=GREY, lw=0.8, ls="--", label="at rest after it")
    time = np.concatenate([[before, 0.0], response.time])
    axes.plot(time, np.concatenate([[start, start], path.mean[:, column]]), color=MODEL, lw=1.8, label="model")
    settled = response.settling_time[column]
    if np.isfinite(settled) and settled > 0.0:
        axes.axvline(settled, color=GREY, lw=0.8)
        axes.text(settled, 0.02, " settled to 2 %", transform=axes.get_xaxis_transform(), fontsize=7)
    axes.set_ylabel(path.output_names[column])


@rc_context({"text.parse_math": False})
def draw_frequency_response(response: "FrequencyResponse", given: AnyFigure | None) -> Figure:
    """Magnitude above phase, a column of panels per input and a line per output."""
    inputs, nyquist = len(response.input_names), 0.5 / response.dt
    figure = start_figure(given, max(7.0, 1.0 + 3.6 * inputs), 5.2)
    panels = figure.subplots(2, inputs, sharex=True, sharey="row", squeeze=False)
    for column, (magnitude, phase) in enumerate(panels.T):
        for row, name in enumerate(response.output_names):
            line = {"color": COLOURS[row % len(COLOURS)], "lw": 1.6, "label": name}
            magnitude.loglog(response.frequencies, response.magnitude[:, row, column], **line)
            phase.semilogx(response.frequencies, response.phase[:, row, column], **line)
        for axes in (magnitude, phase):
            axes.axvline(nyquist, color=GREY, lw=0.8, ls="--", label="Nyquist frequency")
            axes.grid(**GRID)
        magnitude.text(0.03, 0.05, f"from {response.input_names[column]}", transform=magnitude.transAxes, fontsize=9)
        phase.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 1.8, 4.5, 9, 10]))  # in parts of a turn
        phase.set_xlabel("frequency (cycles per sample)" if response.dt == 1.0 else "frequency (Hz)")
    panels[0, 0].set_ylabel("magnitude")
    panels[1, 0].set_ylabel("phase (degrees)")
    finish_figure(figure, f"Frequency response at {response.point}", panels.flat)
    return find_root(figure)


@rc_context({"text.parse_math": False})
def draw_static_gain_curve(curve: "StaticGainCurve", given: AnyFigure | None) -> Figure:
    """Every output at rest over the input, and its slope to the right."""
    outputs = len(curve.output_names)
    figure = start_figure(given, 9.0, 1.2 + 2.4 * outputs)
    panels = figure.subplots(outputs, 2, sharex=True, squeeze=False)
    for row, (level, slope) in enumerate(panels):
        level.plot(curve.inputs, curve.outputs[:, row], color=MODEL, lw=1.8, marker=".", ms=4)
        slope.plot(curve.inputs, curve.gains[:, row], color=MEASURED, lw=1.4, marker=".", ms=4)
        slope.axhline(0.0, color=GREY, lw=0.6)
        level.set_ylabel(f"{curve.output_names[row]} at rest")
        slope.set_ylabel(f"static gain of {curve.output_names[row]}")
        for axes in (level, slope):
            axes.grid(**GRID)
            _shade_unrest(axes, curve, row)
            if curve.extrapolates.any():
                shade_extrapolation(axes, curve.inputs, curve.extrapolates)
    for axes in panels[-1]:
        axes.set_xlabel(curve.input_name)
    inputs = zip(curve.input_names, curve.others, strict=True)
    others = ", ".join(f"{name} = {value:.6g}" for name, value in inputs if name != curve.input_name)
    finish_figure(figure, f"Outputs at rest{' at ' if others else ''}{others}", panels.flat)
    return find_root(figure)


def _shade_unrest(axes: Axes, curve: "StaticGainCurve", row: int) -> None:
    lost = np.isnan(curve.outputs[:, row])
    if lost.any():
        axes.fill_between(
            curve.inputs, 0.0, 1.0, where=lost.tolist(), transform=axes.get_xaxis_transform(), color="#ececec", lw=0,
            label="does not come to rest",
        )  # fmt: skip
