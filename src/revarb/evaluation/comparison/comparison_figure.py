"""Figure of a comparison: one panel per model."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from revarb.data.trajectory import Trajectory
from revarb.data.trajectory_figure import draw_band, draw_measured
from revarb.runtime.figure_style import MODEL, encode_figure, finish_figure, rows_of_axes


@rc_context({"text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "revarb"})
def comparison_figure(
    paths: Mapping[str, Sequence[Trajectory]], measured: np.ndarray, column: int, kind: Literal["png", "svg"]
) -> bytes:
    """One output as every model simulates it, a panel each, over the measured output.

    `paths` has a model's simulations, the plainest first: that one is the line, the one with a band gives the band,
    and where it has another mean it is drawn too, dashed.
    """
    figure = Figure(figsize=(10, 0.7 + 1.5 * len(paths)), layout="constrained")
    first = next(iter(paths.values()))[0]
    time = np.arange(len(measured)) * first.dt
    for axes, (model, several) in zip(rows_of_axes(figure, len(paths)), paths.items(), strict=True):
        for path in several:
            if path.std is not None:
                draw_band(axes, time, path, column)
        draw_measured(axes, time, measured[:, column], width=1.0)
        for path in several[1:]:
            axes.plot(time, path.mean[:, column], color=MODEL, lw=1.0, ls="--", label=f"simulated ({path.method})")
        axes.plot(time, several[0].mean[:, column], color=MODEL, lw=1.1, label="simulated (mean-only)")
        axes.set_title(model, loc="left", fontsize=9, fontweight="bold")
        axes.set_ylabel(first.output_names[column], fontsize=8)
        _look_at(axes, measured[:, column])
    finish_figure(figure, "")
    return encode_figure(figure, kind)


def _look_at(axes, measured: np.ndarray) -> None:
    # A rival that runs away must not make the others flat.
    if np.isnan(measured).all():
        return
    low, high = float(np.nanmin(measured)), float(np.nanmax(measured))
    margin = 0.35 * (high - low) or 1.0
    axes.set_ylim(low - margin, high + margin)
