"""A page that plays measured and simulated motions side by side. Everything is inside it: motions, player, style."""

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
from revarb.motion.strip import HEAD_SIZE, Joints, bones_by_side, heads, shades
from revarb.report.page import grid_html, page_shell
from revarb.report.tables import Grid
from revarb.runtime.figure_style import MEASURED, MODEL, QUIET

MILLIMETRES = 1000  # per metre; the page has whole ones


@dataclass(frozen=True, eq=False)
class Clip:
    """A test motion and its simulation, as joints from `Motion.joints`. `note` is what its scores are.

    scored_from  the first frame that is scored; the number of frames where none is
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


def motion_page(
    title: str,
    opening: str,
    skeleton: Skeleton,
    clips: Sequence[Clip],
    grids: Sequence[Grid] = (),
    meta: Mapping[str, Any] | None = None,
) -> str:
    """The page: what a reader in a hurry should know, the player, then tables, and where it was made."""
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
<script type="application/json" id="motions">{_for_script(_motions(clips, skeleton))}</script>
<script>
{(files("revarb.motion") / "player.js").read_text(encoding="utf-8")}</script>"""


def _for_script(value: Any) -> str:
    # Inside <script> nothing is unescaped, and a "</script>" in a name would end it.
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _motions(clips: Sequence[Clip], skeleton: Skeleton) -> dict[str, Any]:
    bones = [[*ends, side] for side, several in bones_by_side(skeleton).items() for ends in several]
    colours = {"measured": MEASURED, "simulated": MODEL, "ghost": QUIET}
    return {
        "bones": bones,
        "heads": heads(skeleton),
        "headSize": HEAD_SIZE,
        "colours": {what: shades(colour) for what, colour in colours.items()},
        "clips": [_clip(clip, skeleton.unit) for clip in clips],
    }


def _clip(clip: Clip, unit: float) -> dict[str, Any]:
    return {
        "dt": clip.dt,
        "scoredFrom": clip.scored_from,
        "note": clip.note,
        "measured": _frames(clip.measured, unit),
        "simulated": _frames(clip.simulated, unit),
    }


def _frames(joints: Joints, unit: float) -> list[list[int]]:
    """A list per frame: x, y, z of the first joint, of the second, …, in millimetres."""
    whole = np.rint(joints * unit * MILLIMETRES).astype(int)
    return whole.reshape(len(whole), -1).tolist()


_CONTROLS = """<section class="player" aria-label="Player">
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
<p class="hint">Drag a skeleton to turn it. Space plays and pauses, the arrow keys go a frame back or on. The right \
arm and leg are dark, the left ones light; “overlay” puts the measured skeleton behind the simulated one, in grey. The \
view goes along with the root.</p>
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
