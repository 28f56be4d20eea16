"""Figure of the table of outliers: error against the share of outliers, a column of panels per data set."""

from collections.abc import Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from revarb.experiments.outlier_targets import GAUSSIAN, NO_OUTLIERS, STUDENT, OutlierOutcome
from revarb.experiments.spoiling import KINDS, SPIKES, STRETCH
from revarb.runtime.figure_style import MEASURED, MODEL

COLOURS = {GAUSSIAN: MEASURED, STUDENT: MODEL}
OTHERS = ("#8a8a8a", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # told apart by colour-blind readers too
HIGHEST = 1.5
"""Top of a panel, in errors of the training mean: a model that diverges must not flatten the others."""


@rc_context({"text.parse_math": False, "font.size": 9})
def draw_outliers(outcomes: Sequence[OutlierOutcome], reference: str = "Mean") -> Figure:
    """A row of panels per kind of outliers and a column per data set; a line per model, with the range of its seeds.

    Errors are those of the mean-only runs. Panels end a little above the error of `reference`.
    """
    figure = Figure(figsize=(1.0 + 2.9 * len(outcomes), 6.0), layout="constrained")
    panels = figure.subplots(len(KINDS), len(outcomes), sharex=True, sharey="col", squeeze=False)
    for kind, row in zip(KINDS, panels, strict=True):
        for axes, outcome in zip(row, outcomes, strict=True):
            for model, colour in _choose_colours(outcome.models).items():
                _draw_line(axes, outcome, model, kind, colour)
            _limit_errors(axes, outcome, reference)
    _label_panels(panels, outcomes)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=8)
    return figure


def _choose_colours(models: Sequence[str]) -> dict[str, str]:
    others = [model for model in models if model not in COLOURS]
    # Ours last, so that they lie above the others.
    return {**{model: OTHERS[number % len(OTHERS)] for number, model in enumerate(others)},
            **{model: colour for model, colour in COLOURS.items() if model in models}}  # fmt: skip


def _draw_line(axes: Axes, outcome: OutlierOutcome, model: str, kind: str, colour: str) -> None:
    ranges = np.array([outcome.rmse(model, condition) for condition in outcome.conditions(kind)])
    shares, own = 100.0 * np.array(outcome.shares), model in COLOURS
    axes.plot(shares, ranges[:, 1], color=colour, lw=1.8 if own else 1.1, marker="o", ms=3, label=model)
    axes.fill_between(shares, ranges[:, 0], ranges[:, 2], color=colour, alpha=0.18 if own else 0.08, lw=0)


def _limit_errors(axes: Axes, outcome: OutlierOutcome, reference: str) -> None:
    error = outcome.rmse(reference, NO_OUTLIERS).median
    axes.set_ylim(0.0, HIGHEST * error if np.isfinite(error) else None)
    axes.spines[["top", "right"]].set_visible(False)


def _label_panels(panels: np.ndarray, outcomes: Sequence[OutlierOutcome]) -> None:
    for axes, outcome in zip(panels[0], outcomes, strict=True):
        axes.set_title(outcome.name, loc="left", fontsize=9, fontweight="bold")
    for kind, row in zip(KINDS, panels, strict=True):
        row[0].set_ylabel(f"test RMSE, {'spikes' if kind == SPIKES else f'stuck for {STRETCH} samples'}")
    for axes in panels[-1]:
        axes.set_xlabel("outliers among the training samples (%)")
