"""Figure of a choice: the held-out error of every candidate."""

import textwrap

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from revarb.models.choice import FEWER_STRETCHES, Candidate, Choice
from revarb.runtime.figure_style import GREY, MEASURED, MODEL, finish_figure

WIDTH = 70  # characters of a line below the axis
LIMITS = (1e-12, 1e12)  # of what is drawn: a model file may have any numbers


def draw_choice(choice: Choice) -> Figure:
    """Draw the candidates below each other, best first, their errors on a logarithmic axis."""
    drawn = sorted((each for each in choice.candidates if each.error), key=lambda each: each.error or 0.0, reverse=True)
    figure = Figure(figsize=(9.0, 1.6 + 0.22 * len(drawn)), layout="constrained")
    axes = figure.subplots()
    for group, colour, label in _group(drawn, choice.taken):
        if group:
            _draw_points(axes, [drawn.index(each) for each in group], group, colour, label)
    axes.set_xscale("log")
    axes.set_yticks(range(len(drawn)), [each.name for each in drawn], fontsize=8)
    scored_by = textwrap.fill(textwrap.shorten(choice.scored_by, 2 * WIDTH, placeholder=" …"), WIDTH)
    axes.set_xlabel(f"held-out error, in standard deviations of the output\n{scored_by}", fontsize=9)
    _set_ticks(axes)
    axes.grid(axis="x", color="#e8e8e8", linewidth=0.6)
    finish_figure(figure, f"taken: {choice.taken}")
    return figure


def _group(drawn: list[Candidate], taken: str) -> list[tuple[list[Candidate], str, str]]:
    fewer = [each for each in drawn if each.note in FEWER_STRETCHES and each.name != taken]
    others = [each for each in drawn if each.note not in FEWER_STRETCHES and each.name != taken]
    return [
        ([each for each in drawn if each.name == taken], MODEL, "taken"),
        (others, MEASURED, "tried"),
        (fewer, GREY, "fewer stretches (dropped, or not finished)"),
    ]


def _set_ticks(axes) -> None:
    # Plain numbers: evenly spaced where the errors are close, else 1, 2 and 5 of every power of ten, or powers alone.
    low, high = axes.get_xlim()
    if high < 4.0 * low:
        locator: MaxNLocator | LogLocator = MaxNLocator(6)
    else:
        locator = LogLocator(subs=(1.0, 2.0, 5.0) if high < 1e3 * low else (1.0,))
    ticks = [tick for tick in locator.tick_values(low, high) if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:.12g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def _draw_points(axes, positions: list[int], group: list[Candidate], colour: str, label: str) -> None:
    errors = np.clip(np.array([each.error for each in group], dtype=np.float64), *LIMITS)
    spread = np.clip(np.exp(np.minimum([each.standard_error or 0.0 for each in group], 100.0)), 1.0, LIMITS[1])
    axes.errorbar(
        errors, positions, xerr=[errors - errors / spread, errors * spread - errors], fmt="o", markersize=4,
        color=colour, linewidth=1.0, label=label,
    )  # fmt: skip
