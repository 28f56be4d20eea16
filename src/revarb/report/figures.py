"""Figures: arrays in, PNG or SVG bytes out. No computing, no files, no screen."""

import io
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from revarb.fitted import FittedRGP
from revarb.optimise import Step
from revarb.series import Series
from revarb.trajectory import Trajectory

MEASURED, MODEL, BAND, QUIET = "#222222", "#c1272d", "#f2b8a0", "#8a8a8a"


@rc_context({"text.parse_math": False})  # a column may be called a$b$
def simulation_figure(path: Trajectory, measured: np.ndarray | None, title: str) -> bytes:
    """The simulated or predicted output with its 95 % band, over the measured output where there is one."""
    outputs = path.mean.shape[1]
    figure = Figure(figsize=(10, 1.2 + 2.6 * outputs), layout="constrained")
    time = np.arange(len(path)) * path.dt
    for column, axes in enumerate(_rows_of_axes(figure, outputs)):
        if path.std is not None:
            _draw_band(axes, time, path, column)
        if measured is not None:
            _draw_measured(axes, time, measured[:, column])
        axes.plot(time, path.mean[:, column], color=MODEL, lw=1.3, label=f"model ({path.method})")
        if 0 < path.skip < len(path):
            axes.axvline(path.skip * path.dt, color=QUIET, lw=0.8, ls=":", label="scored from here")
        axes.set_ylabel(path.output_names[column])
    _finish(figure, title)
    return picture(figure, "png")


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
    for axes, (model, several) in zip(_rows_of_axes(figure, len(paths)), paths.items(), strict=True):
        for path in several:
            if path.std is not None:
                _draw_band(axes, time, path, column)
        _draw_measured(axes, time, measured[:, column], width=1.0)
        for path in several[1:]:
            axes.plot(time, path.mean[:, column], color=MODEL, lw=1.0, ls="--", label=f"simulated ({path.method})")
        axes.plot(time, several[0].mean[:, column], color=MODEL, lw=1.1, label="simulated (mean-only)")
        axes.set_title(model, loc="left", fontsize=9, fontweight="bold")
        axes.set_ylabel(first.output_names[column], fontsize=8)
        _look_at(axes, measured[:, column])
    _finish(figure, "")
    return picture(figure, kind)


def _draw_measured(axes, time: np.ndarray, values: np.ndarray, width: float = 1.1) -> None:
    axes.plot(time, values, color=MEASURED, lw=width, label="measured")
    gap = np.isnan(np.concatenate([[np.nan], values, [np.nan]]))
    alone = ~gap[1:-1] & gap[:-2] & gap[2:]
    if alone.any():  # a line does not show a value between two gaps
        axes.plot(time[alone], values[alone], color=MEASURED, marker=".", ms=3, lw=0)


def _draw_band(axes, time: np.ndarray, path: Trajectory, column: int) -> None:
    lower, upper = path.interval(0.95)
    axes.fill_between(time, lower[:, column], upper[:, column], color=BAND, lw=0, label="95 % band")


def _look_at(axes, measured: np.ndarray) -> None:
    # A rival that runs away must not make the others flat.
    if np.isnan(measured).all():
        return
    low, high = float(np.nanmin(measured)), float(np.nanmax(measured))
    margin = 0.35 * (high - low) or 1.0
    axes.set_ylim(low - margin, high + margin)


@rc_context({"text.parse_math": False})  # a column may be called a$b$
def fit_figure(model: FittedRGP, records: Sequence[Series]) -> bytes:
    """What the model made of its training data: output, then the latent path of every hidden layer, then the bound.

    Records stand one after the other, a thin line between them. Where the output is missing, its band is drawn.
    """
    paths = model.latent_paths()
    outputs, layers = len(model.output_names), len(paths)
    figure = Figure(figsize=(10, 1.4 + 1.9 * (outputs + layers + 1)), layout="constrained")
    axes = _rows_of_axes(figure, outputs + layers + 1, share=False)
    # The latent states begin later than the record where the inputs reach back further than the states.
    begin = len(records[0]) - model.lengths[0]
    time = (begin + np.arange(sum(model.lengths))) * model.dt
    seams = np.cumsum(model.lengths)[:-1]
    broken = np.insert(time, seams, np.nan)  # lines end where a record does
    _draw_outputs(axes[:outputs], model, records, broken, seams)
    for number, (panel, (mean, std)) in enumerate(zip(axes[outputs:-1], paths, strict=True), start=1):
        _draw_latent(panel, np.insert(mean, seams, np.nan, axis=0), np.insert(std, seams, np.nan, axis=0), broken)
        panel.set_ylabel(f"layer {number}: state")
    for panel in axes[:-1]:
        for seam in time[seams]:
            panel.axvline(seam, color=QUIET, lw=0.6)
    axes[-2].set_xlabel("time")
    _draw_bound(axes[-1], model.history)
    _finish(figure, f"Training: {model.status.value} after {len(model.history)} iterations, bound {model.bound:.1f}")
    return picture(figure, "png")


def _draw_outputs(panels, model: FittedRGP, records: Sequence[Series], time: np.ndarray, seams: np.ndarray) -> None:
    def in_a_row(parts: Sequence[np.ndarray]) -> np.ndarray:
        # The first rows, which the lags take, have no path.
        whole = [np.pad(part, ((length - len(part), 0), (0, 0)), constant_values=np.nan)
                 for part, length in zip(parts, model.lengths, strict=True)]  # fmt: skip
        return np.insert(np.concatenate(whole), seams, np.nan, axis=0)

    measured = in_a_row([record.y[-length:] for record, length in zip(records, model.lengths, strict=True)])
    paths = model.smoothed()
    fitted = in_a_row([path.mean for path in paths])
    lower, upper = (in_a_row(ends) for ends in zip(*(path.interval(0.95) for path in paths), strict=True))
    for column, axes in enumerate(panels):
        _draw_gaps(axes, time, measured[:, column], lower[:, column], upper[:, column])
        _draw_measured(axes, time, measured[:, column])
        axes.plot(time, fitted[:, column], color=MODEL, lw=1.2, label="fitted")
        axes.set_ylabel(model.output_names[column])


def _draw_gaps(axes, time: np.ndarray, measured: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
    gap = np.isnan(measured) & np.isfinite(lower)
    if gap.any():
        reach = gap | np.append(gap[1:], False) | np.append(False, gap[:-1])  # from the last value to the next
        axes.fill_between(time, lower, upper, where=reach, color=BAND, lw=0, label="95 % band, not measured")


def _draw_latent(axes, mean: np.ndarray, std: np.ndarray, time: np.ndarray) -> None:
    for column in range(mean.shape[1]):
        line = axes.plot(time, mean[:, column], lw=1.0)[0]
        low, high = mean[:, column] - 1.96 * std[:, column], mean[:, column] + 1.96 * std[:, column]
        axes.fill_between(time, low, high, alpha=0.25, lw=0, color=line.get_color())


def _draw_bound(axes, history: Sequence[Step]) -> None:
    axes.plot(np.arange(1, len(history) + 1), [step.bound for step in history], color=MEASURED, lw=1.2)
    axes.set_xlabel("iteration")
    axes.set_ylabel("bound")


def _rows_of_axes(figure: Figure, rows: int, share: bool = True):
    axes = figure.subplots(rows, 1, sharex=share, squeeze=False)[:, 0]
    if share:
        axes[-1].set_xlabel("time")
    return axes


def _finish(figure: Figure, title: str) -> None:
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    # Above the first panel, where it hides nothing; what several panels draw is named once.
    drawn = [axes.get_legend_handles_labels() for axes in figure.axes]
    handles = {label: handle for these in drawn for handle, label in zip(*these, strict=True)}
    figure.axes[0].legend(
        handles.values(), handles.keys(), loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=5, fontsize=8,
        frameon=False,
    )  # fmt: skip


def picture(figure: Figure, kind: Literal["png", "svg"]) -> bytes:
    """A finished figure as the bytes of a file."""
    buffer = io.BytesIO()
    # Without a date the same numbers give the same file.
    metadata = {"Software": "revarb"} if kind == "png" else {"Date": None, "Creator": "revarb"}
    figure.savefig(buffer, format=kind, dpi=130, metadata=metadata)
    return buffer.getvalue()
