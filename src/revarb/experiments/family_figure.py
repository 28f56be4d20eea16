"""Figure of learnt transitions against the truth, where the states are known."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from revarb.experiments.known_systems import SYSTEMS
from revarb.runtime.figure_style import BAND, MEASURED, MODEL, finish_figure


def draw_transitions(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """A panel per system and model: the next state as a function of the first state."""
    curves = [row for row in rows if row["part"] == "curve"]
    models = list(dict.fromkeys(row["model"] for row in curves))
    names = [name for name in SYSTEMS if any(row["dataset"] == name for row in curves)]
    figure = Figure(figsize=(3.4 * len(models), 3.0 * len(names)), layout="constrained")
    panels = figure.subplots(len(names), len(models), squeeze=False, sharex="row", sharey="row")
    for name, line in zip(names, panels, strict=True):
        for model, axes in zip(models, line, strict=True):
            _draw_curve(axes, [row for row in curves if (row["dataset"], row["model"]) == (name, model)])
            # Inside of the panel: the legend of the figure is above the first one.
            axes.text(0.5, 0.02, f"{name}: {model}", transform=axes.transAxes, ha="center", fontsize=9)
        line[0].set_ylabel("next state")
    for axes in panels[-1]:
        axes.set_xlabel("first state")
    finish_figure(figure, "")
    return figure


def _draw_curve(axes: Axes, points: Sequence[Mapping[str, Any]]) -> None:
    x, truth, learnt, std = (np.array([point[name] for point in points])
                             for name in ("x", "truth", "learnt", "learnt_std"))  # fmt: skip
    axes.fill_between(x, learnt - 2.0 * std, learnt + 2.0 * std, color=BAND, label="two standard deviations")
    axes.plot(x, truth, color=MEASURED, lw=1.2, label="truth")
    axes.plot(x, learnt, color=MODEL, lw=1.2, ls="--", label="learnt")
