"""Figure of a comparison: one panel per model."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from revarb.data.trajectory import Trajectory
from revarb.data.trajectory_figure import draw_band, draw_measured
from revarb.runtime.figure_style import MODEL, add_panels, finish_figure, name_time
from revarb.runtime.thinning import thin_line


@rc_context({"text.parse_math": False})  # a column may be named a$b$
def draw_comparison(paths: Mapping[str, Sequence[Trajectory]], measured: np.ndarray, column: int) -> Figure:
    """One output as every model simulates it, a panel each, over the measured output.

    `paths` has a model's simulations by its methods. The first (mean-only) is the solid line, a later one is dashed,
    and the one with a band gives the band.
    """
    figure = Figure(figsize=(10, 0.7 + 1.5 * len(paths)), layout="constrained")
    first = next(iter(paths.values()))[0]
    time = np.arange(len(measured)) * first.dt
    panels = add_panels(figure, len(paths), time=name_time(first.dt))
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
    finish_figure(figure, "")
    return figure


def _limit_axis(axes, measured: np.ndarray) -> None:
    # By the measured output: a model that diverges must not flatten the others.
    if np.isnan(measured).all():
        return
    low, high = float(np.nanmin(measured)), float(np.nanmax(measured))
    margin = 0.35 * (high - low) or 1.0
    axes.set_ylim(low - margin, high + margin)
