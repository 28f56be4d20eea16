"""Style and encoding shared by all figures: colours, panels, legend, thinned lines, PNG and SVG bytes."""

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float64, Shaped
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from revarb.errors import InputError, describe
from revarb.runtime.files import write_atomic

MEASURED, MODEL, BAND, GREY = "#222222", "#c1272d", "#f2b8a0", "#8a8a8a"
OTHERS = ("#1f6fb4", "#2a8a57", "#7b4ba0")  # lines of other models
SETTLING, ALERT = "#ececec", "#d95f02"  # rows that are not scored; outliers, limits, rows outside of the training range

MAX_ROWS = 3000  # longer lines are thinned
BINS = 1500  # about the width of a figure in pixels

AnyFigure = Figure | SubFigure
Points = Float64[np.ndarray, " _"]
Times = Shaped[np.ndarray, " _"]  # numbers or dates


def name_time(dt: float, column: str | None = None) -> str:
    """The label of an axis of time: with a sampling interval of 1, and from no column of times, the unit is unknown."""
    return "sample" if dt == 1.0 and column is None else "time (s)"


def start_figure(given: AnyFigure | None, width: float, height: float) -> AnyFigure:
    """A new figure of this size in inches, or the given one, whose size and layout are its owner's."""
    if given is None:
        return Figure(figsize=(width, height), layout="constrained")
    if not isinstance(given, AnyFigure):
        raise InputError(f"fig must be a figure or subfigure of matplotlib, received {describe(given)}")
    return given


def find_root(figure: AnyFigure) -> Figure:
    """The whole figure, which can be saved."""
    return figure if isinstance(figure, Figure) else figure.canvas.figure


def check_axes(given: object, count: int) -> list[Axes]:
    """The given axes, one or several, which must be as many as are needed."""
    axes = [given] if isinstance(given, Axes) else list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(each, Axes) for each in axes) or len(axes) != count:
        raise InputError(f"ax must be {count} axes of matplotlib, one per output, received {describe(given)}")
    return axes  # pyright: ignore[reportReturnType] (checked)


def add_panels(
    figure: AnyFigure, rows: int, share: bool = True, heights: Sequence[float] | None = None, time: str = "time"
):
    """Add panels below each other to a figure; with `share` they have one axis of time, with the label `time`."""
    ratios = {} if heights is None else {"height_ratios": list(heights)}
    axes = figure.subplots(rows, 1, sharex=share, squeeze=False, gridspec_kw=ratios)[:, 0]
    if share:
        axes[-1].set_xlabel(time)
    return axes


def set_title(figure: AnyFigure, title: str) -> None:
    """Add the title; without one, that of a given figure stays."""
    if title:
        figure.suptitle(title, fontsize=11, x=0.01, ha="left")


def finish_figure(figure: AnyFigure, title: str, panels: Iterable[Axes]) -> None:
    """Add the title and one legend for all panels, and remove their upper and right spines."""
    set_title(figure, title)
    panels = list(panels)
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    # Above the first panel, where it covers no data; an entry that several panels share is shown once.
    drawn = [axes.get_legend_handles_labels() for axes in panels]
    handles = {label: handle for these in drawn for handle, label in zip(*these, strict=True)}
    panels[0].legend(
        handles.values(), handles.keys(), loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=5, fontsize=8,
        frameon=False,
    )  # fmt: skip


def label_axes(figure: Figure, labels: Mapping[str, str]) -> Figure:
    """Replace the names of columns beside the panels of a figure, such as by names with units."""
    for axes in figure.axes:
        label = axes.yaxis.label  # which keeps its alignment
        label.set_text(labels.get(label.get_text(), label.get_text()))
    return figure


def encode_figure(figure: Figure, kind: Literal["png", "svg"]) -> bytes:
    """Encode a figure as the bytes of a PNG or SVG file."""
    buffer = io.BytesIO()
    # No date in the metadata: the same figure gives the same bytes.
    metadata = {"Software": "revarb"} if kind == "png" else {"Date": None, "Creator": "revarb"}
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "revarb"}):
        figure.savefig(buffer, format=kind, dpi=130, metadata=metadata)
    return buffer.getvalue()


def save_figure(path: Path, figure: Figure) -> Path:
    """Write a figure as a PNG file (atomic write)."""
    return write_atomic(path, encode_figure(figure, "png"))


def thin_line(time: Times, values: Points) -> tuple[Times, Points]:
    """The smallest and the largest value of every bin of a long line, in the order of their times.

    The figure looks the same and stays small.
    """
    if len(values) <= MAX_ROWS:
        return time, values
    binned = _cut_bins(values)
    low, high = np.argmin(_fill(binned, np.inf), axis=1), np.argmax(_fill(binned, -np.inf), axis=1)
    first = np.arange(len(binned)) * binned.shape[1]
    rows = np.minimum(np.sort(np.stack([first + low, first + high], axis=1), axis=1).ravel(), len(values) - 1)
    return time[rows], values[rows]


def thin_band(time: Times, lower: Points, upper: Points) -> tuple[Times, Points, Points]:
    """The smallest lower and the largest upper end of every bin of a long band."""
    if len(lower) <= MAX_ROWS:
        return time, lower, upper
    below, above = _cut_bins(lower), _cut_bins(upper)
    low, high = _fill(below, np.inf).min(axis=1), _fill(above, -np.inf).max(axis=1)
    gaps = np.isnan(below).all(axis=1)
    starts = time[np.arange(len(below)) * below.shape[1]]
    return starts, np.where(gaps, np.nan, low), np.where(gaps, np.nan, high)


def _cut_bins(values: np.ndarray) -> np.ndarray:
    # One bin per row; the last one is filled with NaN, and bins beyond the end are left out.
    size = -(-len(values) // BINS)
    rows = -(-len(values) // size)
    return np.concatenate([values, np.full(rows * size - len(values), np.nan)]).reshape(rows, size)


def _fill(binned: np.ndarray, value: float) -> np.ndarray:
    return np.where(np.isnan(binned), value, binned)
