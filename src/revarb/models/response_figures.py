"""Figures of a linearisation, a step response, a frequency response and a static gain curve."""

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, MultipleLocator, NullLocator

from revarb.data.trajectory_figure import draw_band
from revarb.models.frequency_response import FrequencyResponse
from revarb.models.linearisation import Linearisation
from revarb.models.operating_point import describe_inputs
from revarb.models.static_gain_curve import StaticGainCurve
from revarb.models.step_response import StepResponse
from revarb.runtime.figure_style import GREY, MEASURED, MODEL, add_panels, finish_figure, name_time

COLOURS = (MODEL, "#0072b2", "#009e73", "#e69f00", "#cc79a7", MEASURED)  # told apart by colour-blind readers too
BEFORE = 0.08  # share of the time axis before a step
STEPS, SETTLED = 300, 1e-3  # most steps of the responses beside the poles; they end where the slowest pole has decayed
LEAST_STEPS = 15


@rc_context({"text.parse_math": False})  # a column may be named a$b$
def draw_linearisation(linear: Linearisation) -> Figure:
    """Poles in the unit circle, and to the right the responses to unit steps, a panel per output."""
    outputs, inputs = linear.D.shape
    figure = Figure(figsize=(10.0, max(4.2, 1.2 + 1.6 * outputs)), layout="constrained")
    grid = figure.add_gridspec(outputs, 2, width_ratios=(1.0, 1.4))
    _draw_poles(figure.add_subplot(grid[:, 0]), linear.poles)
    rows = _count_steps(linear)
    responses, time = linear.step(rows), np.arange(rows) * linear.dt
    panels = [figure.add_subplot(grid[row, 1]) for row in range(outputs)]
    for row, axes in enumerate(panels):
        axes.axhline(0.0, color=GREY, lw=0.6)
        for column in range(inputs):
            name = linear.input_names[column]
            axes.plot(time, responses[:, row, column], color=_colour(column), lw=1.4, drawstyle="steps-post",
                      label=f"step of {name} by 1")  # fmt: skip
        axes.set_ylabel(f"Δ {linear.output_names[row]}")
        axes.tick_params(labelbottom=row == outputs - 1)
    panels[-1].set_xlabel(name_time(linear.dt))
    # The legend stands above the first step response, where it covers no data.
    _finish(figure, panels[0], f"Linearised at {linear.point}")
    return figure


@rc_context({"text.parse_math": False})
def draw_step_response(response: StepResponse) -> Figure:
    """The input that steps, then every output from a little before the step."""
    path = response.path
    heights = [0.7, *[2.2] * len(path.output_names)]
    figure = Figure(figsize=(10.0, 1.2 + sum(heights)), layout="constrained")
    panels = add_panels(figure, len(heights), heights=heights, time=f"{name_time(path.dt)}, from the step")
    before = -max(BEFORE * response.time[-1], path.dt)
    value = response.point.inputs[path.input_names.index(response.input_name)]
    steps = [value, value + response.size, value + response.size]
    panels[0].plot([before, 0.0, response.time[-1]], steps, color=GREY, lw=1.2, drawstyle="steps-post")
    panels[0].set_ylabel(response.input_name, rotation=0, ha="right", va="center", fontsize=8)
    panels[0].tick_params(labelsize=7)
    for column, axes in enumerate(panels[1:]):
        _draw_response(axes, response, column, before)
    finish_figure(figure, _describe_step(response))
    return figure


@rc_context({"text.parse_math": False})
def draw_frequency_response(response: FrequencyResponse) -> Figure:
    """Magnitude above phase, a column of panels per input and a line per output."""
    inputs = len(response.input_names)
    figure = Figure(figsize=(max(7.0, 1.0 + 3.6 * inputs), 5.2), layout="constrained")
    panels = figure.subplots(2, inputs, sharex=True, sharey="row", squeeze=False)
    nyquist = 0.5 / response.dt
    for column, (magnitude, phase) in enumerate(panels.T):
        for row, name in enumerate(response.output_names):
            line = {"color": _colour(row), "lw": 1.6, "label": f"{name}" if column == 0 else None}
            magnitude.loglog(response.frequencies, response.magnitude[:, row, column], **line)
            phase.semilogx(response.frequencies, response.phase[:, row, column], **{**line, "label": None})
        for axes in (magnitude, phase):
            axes.axvline(nyquist, color=GREY, lw=0.8, ls="--")
            axes.grid(color="#e8e8e8", lw=0.6)
        magnitude.set_title(f"from {response.input_names[column]}", fontsize=9, loc="left")
        phase.yaxis.set_major_locator(_choose_degrees(response.phase))
        phase.set_xlabel("frequency (cycles per sample)" if response.dt == 1.0 else "frequency (Hz)")
    _set_plain_ticks(panels[0, 0])
    panels[0, 0].set_ylabel("magnitude")
    panels[1, 0].set_ylabel("phase (degrees)")
    panels[1, 0].text(
        nyquist, 0.97, "Nyquist ", transform=panels[1, 0].get_xaxis_transform(), fontsize=7, ha="right", va="top"
    )
    # Above the last column: its title stands on the left.
    _finish(figure, panels[0, -1], f"Frequency response at {response.point}")
    return figure


@rc_context({"text.parse_math": False})
def draw_static_gain_curve(curve: StaticGainCurve) -> Figure:
    """Every output at rest over the input, and its slope to the right."""
    outputs = len(curve.output_names)
    figure = Figure(figsize=(9.0, 1.2 + 2.4 * outputs), layout="constrained")
    panels = figure.subplots(outputs, 2, sharex=True, squeeze=False)
    for row, (level, slope) in enumerate(panels):
        level.plot(curve.inputs, curve.outputs[:, row], color=MODEL, lw=1.8, marker=".", ms=4)
        slope.plot(curve.inputs, curve.gains[:, row], color=MEASURED, lw=1.4, marker=".", ms=4)
        slope.axhline(0.0, color=GREY, lw=0.6)
        level.set_ylabel(f"{curve.output_names[row]} at rest")
        slope.set_ylabel(f"static gain of {curve.output_names[row]}")
        for axes in (level, slope):
            axes.grid(color="#e8e8e8", lw=0.6)
            _shade_unrest(axes, curve, row)
    for axes in panels[-1]:
        axes.set_xlabel(curve.input_name)
    others = [number for number, name in enumerate(curve.input_names) if name != curve.input_name]
    at = describe_inputs([curve.input_names[number] for number in others], curve.others[others])
    finish_figure(figure, f"Outputs at rest{' at ' if at else ''}{at}")
    return figure


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


def _count_steps(linear: Linearisation) -> int:
    largest = float(np.abs(linear.poles).max(initial=0.0))
    decay = np.log(SETTLED) / np.log(largest) if 0.0 < largest < 1.0 else 0.0
    return int(np.clip(np.ceil(decay), LEAST_STEPS, STEPS))


def _draw_response(axes: Axes, response: StepResponse, column: int, before: float) -> None:
    path, start, final = response.path, response.point.outputs[column], response.final[column]
    if path.std is not None:
        draw_band(axes, response.time, path, column)
    axes.axhline(start, color=GREY, lw=0.8, ls=":", label="before the step")
    axes.axhline(final, color=GREY, lw=0.8, ls="--", label="at rest after it")
    time = np.concatenate([[before, 0.0], response.time])
    axes.plot(time, np.concatenate([[start, start], path.mean[:, column]]), color=MODEL, lw=1.8, label="model")
    settled = response.settling_time[column]
    if np.isfinite(settled) and settled > 0.0:
        axes.axvline(settled, color=GREY, lw=0.8)
        axes.text(settled, 0.02, " settled to 2 %", transform=axes.get_xaxis_transform(), fontsize=7)
    axes.set_ylabel(path.output_names[column])


def _describe_step(response: StepResponse) -> str:
    gains = ", ".join(f"{gain:.3g}" for gain in response.gain)
    return f"{response.input_name} steps by {response.size:.3g} at {response.point}: gain {gains}"


def _choose_degrees(phase: np.ndarray) -> MultipleLocator | MaxNLocator:
    # Quarters and halves of a turn, unless they are too many or too few.
    turns = np.ptp(phase) / 90.0
    return MultipleLocator(90.0 if turns <= 8.0 else 180.0) if 1.0 <= turns <= 16.0 else MaxNLocator(6)


def _set_plain_ticks(axes: Axes) -> None:
    # 0.5, 1, 2 … where the magnitudes are within a few decades, else powers of ten.
    low, high = axes.get_ylim()
    if high < 1e3 * low:
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))
        axes.yaxis.set_minor_locator(NullLocator())


def _shade_unrest(axes: Axes, curve: StaticGainCurve, row: int) -> None:
    lost = np.isnan(curve.outputs[:, row])
    if lost.any():
        axes.fill_between(
            curve.inputs, 0.0, 1.0, where=lost.tolist(), transform=axes.get_xaxis_transform(), color="#ececec", lw=0,
            label="does not come to rest",
        )  # fmt: skip


def _finish(figure: Figure, legend: Axes, title: str) -> None:
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    drawn = [axes.get_legend_handles_labels() for axes in figure.axes]
    handles = {label: handle for these in drawn for handle, label in zip(*these, strict=True)}
    legend.legend(
        handles.values(), handles.keys(), loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, fontsize=8,
        frameon=False,
    )  # fmt: skip


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]
