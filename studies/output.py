"""What a study writes: results files, figures and a page, each in one piece or not at all."""

import io
import json
import math
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from matplotlib import rc_context
from matplotlib.figure import Figure

import revarb
from studies.tables import Grid, Rows

MEASURED, MODEL, BAND, GREY, LIMIT = "#222222", "#c1272d", "#f2b8a0", "#8a8a8a", "#d95f02"
LIBRARIES = ("revarb", "jax", "numpy", "scipy", "equinox")


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Create a folder and its parents unless they exist."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise revarb.InputError(f"cannot create the folder {path}: {error.strerror or error}") from None
    return Path(path)


def write_file(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write a file atomically: to a temporary name in the same folder, then rename."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.part")
    try:
        temporary.write_bytes(content)
        temporary.replace(target)
    except OSError as error:
        raise revarb.InputError(f"cannot write {target}: {error.strerror or error}") from None
    return target


def write_results(path: Path, meta: Mapping[str, Any], rows: Rows) -> Path:
    """Write `{"meta": {...}, "rows": [...]}`; NaN and infinity become null."""
    content = {"meta": dict(meta), "rows": [{key: _plain(value) for key, value in row.items()} for row in rows]}
    return write_file(path, (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def describe_run(command: str) -> dict[str, Any]:
    """The command, the time, the versions and the machine: for results files and pages."""
    return {
        "command": command,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in LIBRARIES},
        "processor": _find_processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }


def _find_processor() -> str:
    # platform.processor() is empty on most Linux systems.
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def finish_figure(figure: Figure, title: str) -> None:
    """Add the title and one legend for all panels, and remove the upper and right spines."""
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    handles = {}
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        handles |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    # Above the first panel, where it covers no data.
    place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 5, "fontsize": 8, "frameon": False}
    figure.axes[0].legend(handles.values(), handles.keys(), **place)


def encode_figure(figure: Figure, kind: Literal["png", "svg"]) -> bytes:
    """Encode a figure as the bytes of a PNG or SVG file."""
    buffer = io.BytesIO()
    # No date in the metadata: the same figure gives the same bytes.
    metadata = {"Software": "revarb"} if kind == "png" else {"Date": None, "Creator": "revarb"}
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "revarb", "text.parse_math": False}):
        figure.savefig(buffer, format=kind, dpi=130, metadata=metadata)
    return buffer.getvalue()


def make_page(title: str, opening: str, body: str, meta: Mapping[str, Any], style: str = "") -> str:
    """A page around `body`, which is HTML; all else is text. Nothing is loaded from elsewhere."""
    made = "".join(f"<dt>{escape(str(key))}</dt><dd>{escape(_describe(value))}</dd>" for key, value in meta.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}{style}</style>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<p class="opening">{escape(opening)}</p>
{body}
<dl>{made}</dl>
</main>
</body>
</html>
"""


def _describe(value: Any) -> str:
    return ", ".join(f"{key} {each}" for key, each in value.items()) if isinstance(value, Mapping) else str(value)


def grid_html(grid: Grid) -> str:
    """A table for a page, with its title."""
    header = "".join(f"<th>{escape(head)}</th>" for head in grid.columns)
    rows = []
    for number, cells in enumerate(grid.rows):
        inside = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(f"<tr{' class=best' if number == grid.best else ''}>{inside}</tr>")
    table = f"<table><thead><tr>{header}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f"<h2>{escape(grid.title)}</h2><div class=wide>{table}</div>"


def figure_html(caption: str, figure: Figure) -> str:
    """A figure as SVG with its caption."""
    text = encode_figure(figure, "svg").decode("utf-8")
    # Without the XML declaration in front of <svg, which is not allowed inside a page.
    return f"<figure>{text[text.index('<svg') :]}<figcaption>{escape(caption)}</figcaption></figure>"


STYLE = """
body { margin: 0; background: #fff; color: #222; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .4rem; }
.opening { font-size: 1.15rem; border-left: .3rem solid #c1272d; padding-left: .8rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .5rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #e3e3e3; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
tr.best td { background: #fdf0ea; font-weight: 600; }
figure { margin: 1rem 0; } figure svg { width: 100%; height: auto; } figcaption { color: #666; font-size: .85rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .8rem; color: #666; }
dd { margin: 0; }
"""
