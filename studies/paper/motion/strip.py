"""Draw motions as strips of poses. Joints in, matplotlib Figures out."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float64
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from studies.output import GREY, MEASURED, MODEL
from studies.paper.motion.kinematics import Skeleton

Side = Literal["left", "middle", "right"]
Joints = Float64[np.ndarray, "T J 3"]
SideView = Float64[np.ndarray, "T J 2"]

HEAD_SIZE = 0.9  # radius of the head, in lengths of its bone
DEPTH: Mapping[Side, float] = {"left": 0.42, "middle": 0.7, "right": 1.0}  # strength of the colour: 0 is white
GROUND = "#c8c8c8"
INCHES_PER_METRE = 1.05
MIN_POSE_WIDTH = 0.6  # metres: leaves space for the time below a pose


@rc_context({"text.parse_math": False})  # the name of a motion may contain dollar signs
def draw_strip(
    strips: Mapping[str, Joints],
    skeleton: Skeleton,
    title: str,
    dt: float,
    scored_from: int = 0,
    poses: int = 12,
    phases: Sequence[str] | None = None,
) -> Figure:
    """Draw motions one above the other as poses, evenly spaced in time, from left to right.

    Parameters
    ----------
    strips : mapping of str to array [T, J, 3]
        Joints of each motion (`Motion.joints`) by its name; the first one is the measured one.
    skeleton : Skeleton
        Its bones connect the joints.
    title : str
        Title of the figure.
    dt : float
        Seconds between frames.
    scored_from : int
        The first frame that is scored; marked by a dotted line unless it is 0.
    poses : int
        Number of poses.
    phases : sequence of str, optional
        A colour for each frame, for a single motion: for example one for walking and one for running.

    Returns
    -------
    matplotlib.figure.Figure
        Poses are seen from the subject's right, at equal distances, whatever the distance covered by the root. The
        ground is the lowest point of the first motion.
    """
    first = next(iter(strips.values()))
    shown = np.unique(np.linspace(0, len(first) - 1, poses).round().astype(int))
    rows = [_side_view(joints[shown], first[..., 1].min()) * skeleton.metres_per_unit for joints in strips.values()]
    space = max(MIN_POSE_WIDTH, *(float(np.ptp(row[..., 0], axis=1).max()) for row in rows))
    places = space * np.arange(len(shown))
    figure = _empty_figure(rows, len(shown), space)
    figure.suptitle(f"{title}\n", fontsize=12, x=0.003, ha="left")
    panels, of_motion = figure.axes, [MEASURED] + [MODEL] * (len(rows) - 1)
    for axes, name, row, colour in zip(panels, strips, rows, of_motion, strict=True):
        colours = [colour if phases is None else phases[int(frame)] for frame in shown]
        _draw_poses(axes, row, places, skeleton, colours)
        axes.set_title(name, loc="left", fontsize=10, fontweight="bold", color=colour)
        if 0 < scored_from < len(first):
            _mark_scored_from(axes, float(np.interp(scored_from, shown, places)))
    panels[0].set_title("right arm and leg dark, left light", loc="right", fontsize=9, color=GREY)
    panels[-1].set_xticks(places, [f"{dt * frame:.2f} s" for frame in shown], fontsize=9, color=MEASURED)
    return figure


def shade_sides(colour: str) -> dict[Side, str]:
    """Shades of a colour for the left limbs (light), the trunk and the right limbs (dark)."""
    return {side: tint(colour, depth) for side, depth in DEPTH.items()}


def tint(colour: str, depth: float) -> str:
    """Mix a colour with white: depth 0 is white, depth 1 the colour itself."""
    red, green, blue = to_rgb(colour)
    return to_hex((1.0 - depth * (1.0 - red), 1.0 - depth * (1.0 - green), 1.0 - depth * (1.0 - blue)))


def group_bones(skeleton: Skeleton) -> dict[Side, list[tuple[int, int]]]:
    """Group the bones by side of the body, each as the indices of its joint and of the parent of it."""
    found: dict[Side, list[tuple[int, int]]] = {"left": [], "middle": [], "right": []}
    for joint, bone in enumerate(skeleton.bones):
        if bone.parent is not None:
            found[_side(bone.name, skeleton.names)].append((joint, bone.parent))
    return found


def find_heads(skeleton: Skeleton) -> list[tuple[int, int]]:
    """Find the head: indices of its joint and of the parent, between which a disc is drawn; empty without a head."""
    return [ends for ends in group_bones(skeleton)["middle"] if skeleton.names[ends[0]] == "head"]


def _side(name: str, names: tuple[str, ...]) -> Side:
    # A first letter l or r is not enough ("lowerback"): the same bone must exist on the other side.
    if name[0] == "l" and f"r{name[1:]}" in names:
        return "left"
    return "right" if name[0] == "r" and f"l{name[1:]}" in names else "middle"


def _side_view(joints: Joints, ground: float) -> SideView:
    # The walk is along z, y is up; the distance covered by the root is subtracted.
    return np.stack([joints[..., 2] - joints[:, :1, 2], joints[..., 1] - ground], axis=-1)


def _empty_figure(rows: list[SideView], poses: int, space: float) -> Figure:
    """A panel per motion, with the same scale in both directions and in all panels."""
    lowest, highest = min(row[..., 1].min() for row in rows), max(row[..., 1].max() for row in rows)
    width, height = space * poses, highest - lowest + 0.3
    size = (INCHES_PER_METRE * width + 0.2, (INCHES_PER_METRE * height + 0.3) * len(rows) + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    limits = {"xlim": (-0.5 * space, width - 0.5 * space), "ylim": (lowest - 0.1, highest + 0.2)}
    for axes in figure.subplots(len(rows), 1, sharex=True, sharey=True, squeeze=False)[:, 0]:
        axes.set(aspect="equal", yticks=[], **limits)
        axes.axhline(0.0, color=GROUND, lw=1.2, zorder=0)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    return figure


def _draw_poses(axes: Axes, row: SideView, places: np.ndarray, skeleton: Skeleton, colours: Sequence[str]) -> None:
    placed = row + np.stack([places, np.zeros_like(places)], axis=-1)[:, None]
    # Painter's order: the right side is nearest and comes last.
    for side, bones in group_bones(skeleton).items():
        lines = [ends for bone in bones for ends in placed[:, bone]]
        shaded = [shade_sides(colour)[side] for colour in colours] * len(bones)
        axes.add_collection(LineCollection(lines, colors=shaded, lw=2.2, capstyle="round"))
    for joint, parent in find_heads(skeleton):
        radius = HEAD_SIZE * skeleton.bones[joint].length * skeleton.metres_per_unit
        for centre, colour in zip(placed[:, [joint, parent]].mean(axis=1), colours, strict=True):
            axes.add_patch(Circle(centre, radius, color=shade_sides(colour)["middle"], lw=0))


def _mark_scored_from(axes: Axes, place: float) -> None:
    axes.axvline(place, color=GREY, lw=0.9, ls=":", zorder=0)
    axes.annotate(
        "scored from here", (place, 1.0), (4, 0), xycoords=("data", "axes fraction"), textcoords="offset points",
        va="top", fontsize=8, color=GREY,
    )  # fmt: skip
