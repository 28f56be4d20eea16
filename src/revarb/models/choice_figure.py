"""Figure of a choice: the held-out error of every candidate."""

import numpy as np
from matplotlib.figure import Figure

from revarb.models.choice import Candidate, Choice
from revarb.runtime.figure_style import GREY, MEASURED, MODEL, finish_figure

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
    axes.set_xlabel(f"held-out error, in standard deviations of the output ({choice.scored_by})")
    axes.grid(axis="x", which="both", color="#e8e8e8", linewidth=0.6)
    finish_figure(figure, f"taken: {choice.taken}")
    return figure


def _group(drawn: list[Candidate], taken: str) -> list[tuple[list[Candidate], str, str]]:
    dropped = [each for each in drawn if each.note == "dropped"]
    others = [each for each in drawn if each.note != "dropped" and each.name != taken]
    return [
        ([each for each in drawn if each.name == taken], MODEL, "taken"),
        (others, MEASURED, "tried"),
        (dropped, GREY, "dropped early (fewer stretches)"),
    ]


def _draw_points(axes, positions: list[int], group: list[Candidate], colour: str, label: str) -> None:
    errors = np.clip(np.array([each.error for each in group], dtype=np.float64), *LIMITS)
    spread = np.clip(np.exp(np.minimum([each.standard_error or 0.0 for each in group], 100.0)), 1.0, LIMITS[1])
    axes.errorbar(
        errors, positions, xerr=[errors - errors / spread, errors * spread - errors], fmt="o", markersize=4,
        color=colour, linewidth=1.0, label=label,
    )  # fmt: skip
