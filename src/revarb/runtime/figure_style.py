"""Style and encoding shared by all figures: colours, panels, legend, PNG and SVG bytes."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from matplotlib import rc_context
from matplotlib.figure import Figure

from revarb.runtime.files import write_atomic

MEASURED, MODEL, BAND, GREY = "#222222", "#c1272d", "#f2b8a0", "#8a8a8a"
OTHERS = ("#1f6fb4", "#2a8a57", "#7b4ba0")  # lines of other models
SETTLING, OUTSIDE = "#ececec", "#d95f02"  # rows that are not scored; rows with inputs that training has not shown


def name_time(dt: float) -> str:
    """The label of an axis of time: a sampling interval of 1 is that of a record of which nothing else is known."""
    return "sample" if dt == 1.0 else "time (s)"


def add_panels(
    figure: Figure, rows: int, share: bool = True, heights: Sequence[float] | None = None, time: str = "time"
):
    """Add panels below each other to a figure; with `share` they have one axis of time, with the label `time`."""
    ratios = {} if heights is None else {"height_ratios": list(heights)}
    axes = figure.subplots(rows, 1, sharex=share, squeeze=False, gridspec_kw=ratios)[:, 0]
    if share:
        axes[-1].set_xlabel(time)
    return axes


def finish_figure(figure: Figure, title: str) -> None:
    """Add the title and one legend for all panels, and remove the upper and right spines."""
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    # Above the first panel, where it covers no data; an entry that several panels share is shown once.
    drawn = [axes.get_legend_handles_labels() for axes in figure.axes]
    handles = {label: handle for these in drawn for handle, label in zip(*these, strict=True)}
    figure.axes[0].legend(
        handles.values(), handles.keys(), loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=5, fontsize=8,
        frameon=False,
    )  # fmt: skip


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
