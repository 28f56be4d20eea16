"""HTML page that plays measured and simulated motions side by side; self-contained (data, script and style inline)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from studies.output import GREY, MEASURED, MODEL, grid_html, make_page
from studies.paper.motion.kinematics import Skeleton
from studies.paper.motion.strip import HEAD_SIZE, Joints, find_heads, group_bones, shade_sides
from studies.tables import Grid

MILLIMETRES = 1000  # per metre; positions are rounded to whole millimetres


@dataclass(frozen=True, eq=False)
class Clip:
    """A measured motion and its simulation, to be played side by side.

    Attributes
    ----------
    name : str
        Name in the list of motions.
    measured, simulated : array [T, J, 3]
        Joints (`Motion.joints`).
    dt : float
        Seconds between frames.
    scored_from : int
        The first frame that is scored; T where none is.
    note : str
        A sentence with its scores.
    """

    name: str
    measured: Float64[np.ndarray, "_ _ 3"]
    simulated: Float64[np.ndarray, "_ _ 3"]
    dt: float
    scored_from: int
    note: str


def make_motion_page(
    title: str,
    opening: str,
    skeleton: Skeleton,
    clips: Sequence[Clip],
    grids: Sequence[Grid] = (),
    meta: Mapping[str, Any] | None = None,
) -> str:
    """Make the page: a summary sentence, the player, tables, and `meta`, which says how it was made."""
    tables = "".join(map(grid_html, grids))
    return make_page(title, opening, f"{_player(clips, skeleton)}\n{tables}", meta or {}, _read("player.css"))


def _player(clips: Sequence[Clip], skeleton: Skeleton) -> str:
    options = "".join(f"<option value={number}>{escape(clip.name)}</option>" for number, clip in enumerate(clips))
    return f"""{_read("player.html").replace("<!-- clips -->", options)}
<script type="application/json" id="motions">{_encode_for_script(_motions(clips, skeleton))}</script>
<script>
{_read("player.js")}</script>"""


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _encode_for_script(value: Any) -> str:
    # HTML entities do not work inside <script>, and a "</script>" in a name would end it.
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _motions(clips: Sequence[Clip], skeleton: Skeleton) -> dict[str, Any]:
    bones = [[*ends, side] for side, several in group_bones(skeleton).items() for ends in several]
    colours = {"measured": MEASURED, "simulated": MODEL, "overlay": GREY}
    return {
        "bones": bones,
        "heads": find_heads(skeleton),
        "headSize": HEAD_SIZE,
        "colours": {what: shade_sides(colour) for what, colour in colours.items()},
        "clips": [_clip(clip, skeleton.metres_per_unit) for clip in clips],
    }


def _clip(clip: Clip, metres_per_unit: float) -> dict[str, Any]:
    return {
        "dt": clip.dt,
        "scoredFrom": clip.scored_from,
        "note": clip.note,
        "measured": _frames(clip.measured, metres_per_unit),
        "simulated": _frames(clip.simulated, metres_per_unit),
    }


def _frames(joints: Joints, metres_per_unit: float) -> list[list[int]]:
    """A list per frame: x, y, z of the first joint, of the second, …, in millimetres."""
    rounded = np.rint(joints * metres_per_unit * MILLIMETRES).astype(int)
    return rounded.reshape(len(rounded), -1).tolist()
