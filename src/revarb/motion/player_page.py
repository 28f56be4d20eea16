"""HTML page that plays measured and simulated motions side by side; self-contained (data, script and style inline)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError, check_integer, check_number
from revarb.motion.kinematics import Skeleton
from revarb.motion.strip import HEAD_SIZE, Joints, find_heads, group_bones, shade_sides
from revarb.report.page import grid_html, page_shell
from revarb.report.tables import Grid
from revarb.runtime.figure_style import GREY, MEASURED, MODEL

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

    def __post_init__(self):
        if self.measured.shape != self.simulated.shape or not len(self.measured):
            raise InputError(
                f"{self.name!r} must have as many joints and frames measured as simulated, received "
                f"{self.measured.shape} and {self.simulated.shape}"
            )
        if not (np.isfinite(self.measured).all() and np.isfinite(self.simulated).all()):
            raise InputError(f"the joints of {self.name!r} must be finite numbers")
        check_number("dt", self.dt, above=0.0)
        check_integer("scored_from", self.scored_from, least=0, most=len(self.measured))


def make_motion_page(
    title: str,
    opening: str,
    skeleton: Skeleton,
    clips: Sequence[Clip],
    grids: Sequence[Grid] = (),
    meta: Mapping[str, Any] | None = None,
) -> str:
    """Make the page: a summary sentence, the player, tables, and `meta`, which says how it was made."""
    _check_clips(clips, skeleton)
    tables = "".join(f"<h2>{escape(grid.title)}</h2>\n{grid_html(grid)}\n" for grid in grids)
    return page_shell(title, opening, f"{_player(clips, skeleton)}\n{tables}", meta or {}, _STYLE)


def _check_clips(clips: Sequence[Clip], skeleton: Skeleton) -> None:
    if not clips:
        raise InputError("there is no motion to play; pass at least one clip")
    for clip in clips:
        if clip.measured.shape[1:] != (len(skeleton.bones), 3):
            wanted = f"[T, {len(skeleton.bones)}, 3]"
            raise InputError(f"the joints of {clip.name!r} must be {wanted}, received {clip.measured.shape}")


def _player(clips: Sequence[Clip], skeleton: Skeleton) -> str:
    options = "".join(f"<option value={number}>{escape(clip.name)}</option>" for number, clip in enumerate(clips))
    return f"""{_CONTROLS.replace("<!-- clips -->", options)}
<script type="application/json" id="motions">{_encode_for_script(_motions(clips, skeleton))}</script>
<script>
{(files("revarb.motion") / "player.js").read_text(encoding="utf-8")}</script>"""


def _encode_for_script(value: Any) -> str:
    # HTML entities do not work inside <script>, and a "</script>" in a name would end it.
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _motions(clips: Sequence[Clip], skeleton: Skeleton) -> dict[str, Any]:
    bones = [[*ends, side] for side, several in group_bones(skeleton).items() for ends in several]
    colours = {"measured": MEASURED, "simulated": MODEL, "ghost": GREY}
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


_CONTROLS = """<section class="player" aria-label="LiveAvatar">
<div class="controls">
<label>Motion <select id="clip"><!-- clips --></select></label>
<button type="button" id="play">Play</button>
<label>Speed <select id="speed"><option value="0.25">¼×</option><option value="0.5">½×</option>\
<option value="1" selected>1×</option></select></label>
<label><input type="checkbox" id="overlay"> overlay</label>
</div>
<p id="note"></p>
<div class="stage">
<figure><figcaption>measured</figcaption>\
<canvas id="measured" role="img" aria-label="The measured skeleton"></canvas></figure>
<figure><figcaption>simulated</figcaption>\
<canvas id="simulated" role="img" aria-label="The simulated skeleton"></canvas></figure>
</div>
<input type="range" id="time" min="0" step="1" value="0" aria-label="Frame">
<div id="scored"></div>
<p class="clock"><output id="clock"></output><span id="start"></span></p>
<p class="hint">Drag a skeleton to rotate it. Space plays and pauses, the arrow keys step one frame back or forward. \
The right arm and leg are dark, the left ones light; “overlay” shows the measured skeleton behind the simulated one, \
in grey. The view follows the root.</p>
<noscript><p>The player needs JavaScript.</p></noscript>
</section>"""


_STYLE = """
.player { margin: 1.5rem 0; }
.controls { display: flex; flex-wrap: wrap; gap: .6rem 1.2rem; align-items: center; }
.controls select, .controls button { font: inherit; padding: .25rem .6rem; }
.controls button { min-width: 5.5rem; cursor: pointer; }
#note { font-weight: 600; margin: .6rem 0; min-height: 1.5em; }
.stage { display: grid; grid-template-columns: 1fr 1fr; gap: .8rem; }
.stage figure { margin: 0; border: 1px solid #e3e3e3; border-radius: .4rem; overflow: hidden; }
.stage figcaption { padding: .3rem .7rem; }
.stage canvas { display: block; width: 100%; height: clamp(14rem, 55vh, 28rem); cursor: grab; touch-action: pan-y; }
.stage canvas:active { cursor: grabbing; }
#time { width: 100%; margin: .8rem 0 0; accent-color: #c1272d; }
#scored { height: .3rem; margin: 0 8px 0 calc(8px + (100% - 16px) * var(--start, 0)); background: #c1272d; }
.clock { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem; margin: .3rem 0; }
.clock { font-variant-numeric: tabular-nums; }
#start { color: #c1272d; }
.hint { color: #666; font-size: .85rem; }
@media (max-width: 40rem) {
  .stage { grid-template-columns: 1fr; }
  .stage canvas { height: 36vh; min-height: 12rem; }
}
"""
