"""Render motions as animated GIFs. Joints in, bytes out."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, cos, sin
from pathlib import Path

import numpy as np
from jaxtyping import Float64, UInt8
from matplotlib import get_data_path
from PIL import Image, ImageColor, ImageDraw, ImageFont

from revarb import InputError
from studies.output import MEASURED, MODEL
from studies.paper.motion.kinematics import Skeleton
from studies.paper.motion.strip import DEPTH, HEAD_SIZE, Joints, find_heads, group_bones, tint

MAX_FRAME_RATE = 15.0  # frames per second
SIZE = 320  # pixels, width and height
SUPERSAMPLING = 3  # bones and ground are drawn this many times larger and reduced, for smooth edges
TITLE_HEIGHT, FONT_SIZE, BORDER = 26, 12, 8  # pixels: space above the skeleton, letters, margin of the text
YAW, TILT = 0.45, 0.14  # radians: the camera is on the subject's right, a little to the front and above
MARGIN, THICKNESS = 0.08, 0.03  # metres: around the skeleton, of a bone
GRID = 1.0  # metres: a root that covered more than half of it per frame would seem to move backwards
BODY_LEVEL, TEXT_LEVEL, GROUND_LEVEL = 255, 190, 90  # intensities; 0 is white
TINTS = 16  # of every colour
MAX_COLOURS = 256 // TINTS - 1  # a GIF has 256 colours in all; one set of tints is for grey

Pose = Float64[np.ndarray, "J 3"]
Intensity = UInt8[np.ndarray, "N N"]


def render_film(
    joints: Joints, skeleton: Skeleton, dt: float, title: str = "", colours: Sequence[str] | None = None
) -> bytes:
    """Render a motion as an animated GIF that loops at the motion's own speed.

    Parameters
    ----------
    joints : array [T, J, 3]
        Joints of the motion (`Motion.joints`).
    skeleton : Skeleton
        Its bones connect the joints.
    dt : float
        Seconds between frames; frames are left out where there are more than 15 per second.
    title : str
        Title in the first line.
    colours : sequence of str, optional
        A colour for each frame: for example one for walking and one for running.

    Returns
    -------
    bytes
        The GIF file. The camera follows the root over a grid of one metre.
    """
    step = max(1, ceil(1.0 / (MAX_FRAME_RATE * dt) - 1e-6))
    by_frame = [MODEL] * len(joints) if colours is None else colours
    palette, metres = _Palette.from_colours(by_frame), joints * skeleton.metres_per_unit
    camera, shown = _Camera.from_joints(metres), range(0, len(joints), step)
    pictures = []
    for frame in shown:
        grey = np.maximum(_draw_text(title, frame * dt), _draw_ground(camera, metres[frame, 0]))
        pictures.append(palette.combine(grey, _draw_body(camera, metres[frame], skeleton), by_frame[frame]))
    return _encode_gif(pictures, _durations(len(shown), step * dt))


# --- projection ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Camera:
    """Projection of positions to supersampled pixels, with the same scale for all frames.

    ground  height of the lowest joint
    radius  largest horizontal distance of a joint from the root
    scale   supersampled pixels per metre
    """

    ground: float
    radius: float
    scale: float

    @staticmethod
    def from_joints(metres: Joints) -> "_Camera":
        relative = metres - metres[:, :1]
        radius = float(np.hypot(relative[..., 0], relative[..., 2]).max()) + MARGIN
        ground, top = float(metres[..., 1].min()), float(metres[..., 1].max())
        height = top - ground + 2 * MARGIN + radius * sin(TILT)
        return _Camera(ground, radius, SUPERSAMPLING * min(SIZE / (2 * radius), (SIZE - TITLE_HEIGHT) / height))

    def project(
        self, positions: Float64[np.ndarray, "*N 3"], root: Float64[np.ndarray, "3"]
    ) -> Float64[np.ndarray, "*N 3"]:
        """Pixels to the right and down, and the distance away from the camera. The walk is along z, y is up."""
        ahead, left = positions[..., 2] - root[2], positions[..., 0] - root[0]
        away = left * cos(YAW) - ahead * sin(YAW)
        up = (positions[..., 1] - self.ground) * cos(TILT) + away * sin(TILT)
        floor = SUPERSAMPLING * SIZE - self.scale * (self.radius * sin(TILT) + MARGIN)
        right = SUPERSAMPLING * SIZE / 2 + self.scale * (ahead * cos(YAW) + left * sin(YAW))
        return np.stack([right, floor - self.scale * up, away], axis=-1)

    @property
    def width(self) -> float:
        """Width of the picture in metres."""
        return SUPERSAMPLING * SIZE / self.scale


# --- drawing ---------------------------------------------------------------------------------------------------------


def _draw_ground(camera: _Camera, root: Float64[np.ndarray, "3"]) -> Intensity:
    """A circular part of a grid that is fixed to the ground, around the root."""
    canvas, pen = _large_canvas()
    radius = camera.width / 2
    for across, along in ((0, 2), (2, 0)):
        first, last = (root[across] - radius) / GRID, (root[across] + radius) / GRID
        for position in GRID * np.arange(ceil(first), last):
            half = np.sqrt(radius**2 - (position - root[across]) ** 2)
            ends = np.full((2, 3), camera.ground)
            ends[:, across], ends[:, along] = position, root[along] + [-half, half]
            pen.line(camera.project(ends, root)[:, :2].ravel().tolist(), GROUND_LEVEL, SUPERSAMPLING)
    return np.asarray(canvas.reduce(SUPERSAMPLING))


def _draw_body(camera: _Camera, pose: Pose, skeleton: Skeleton) -> Intensity:
    canvas, pen = _large_canvas()
    projected = camera.project(pose, pose[0])
    bones = [(*ends, DEPTH[side]) for side, several in group_bones(skeleton).items() for ends in several]
    # Painter's order: the farthest bone first.
    for joint, parent, depth in sorted(bones, key=lambda bone: -projected[bone[0], 2] - projected[bone[1], 2]):
        level, thickness = round(BODY_LEVEL * depth), camera.scale * THICKNESS
        pen.line([*projected[joint, :2], *projected[parent, :2]], level, round(thickness))
        for end in (joint, parent):  # round ends
            _draw_disc(pen, projected[end], thickness / 2, level)
    for joint, parent in find_heads(skeleton):
        radius = HEAD_SIZE * skeleton.bones[joint].length * skeleton.metres_per_unit * camera.scale
        _draw_disc(pen, (projected[joint] + projected[parent]) / 2, radius, round(BODY_LEVEL * DEPTH["middle"]))
    return np.asarray(canvas.reduce(SUPERSAMPLING))


def _draw_disc(pen: ImageDraw.ImageDraw, centre: Float64[np.ndarray, "3"], radius: float, level: int) -> None:
    right, down, _ = centre
    pen.ellipse((right - radius, down - radius, right + radius, down + radius), level)


def _large_canvas() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    canvas = Image.new("L", (SUPERSAMPLING * SIZE, SUPERSAMPLING * SIZE))
    return canvas, ImageDraw.Draw(canvas)


def _draw_text(title: str, seconds: float) -> Intensity:
    canvas = Image.new("L", (SIZE, SIZE))
    pen, one_line = ImageDraw.Draw(canvas), " ".join(title.split())
    font = ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), FONT_SIZE)
    shrink = max(1.0, font.getlength(one_line) / (SIZE - 2 * BORDER))  # a long title gets smaller letters
    pen.text((BORDER, BORDER), one_line, TEXT_LEVEL, font.font_variant(size=max(1, int(FONT_SIZE / shrink))))
    pen.text((SIZE - BORDER, BORDER + 2 * FONT_SIZE), f"{seconds:.2f} s", TEXT_LEVEL, font, anchor="rt")
    return np.asarray(canvas)


# --- GIF -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Palette:
    """Tints of grey and of every colour of the film, from white to the full colour."""

    colours: tuple[str, ...]

    @staticmethod
    def from_colours(colours: Sequence[str]) -> "_Palette":
        different = tuple(dict.fromkeys([MEASURED, *colours]))
        if len(different) > MAX_COLOURS + 1:
            raise InputError(f"a film has at most {MAX_COLOURS} different colours, received {len(different) - 1}")
        return _Palette(different)

    def combine(self, grey: Intensity, body: Intensity, colour: str) -> Image.Image:
        """A picture of the grey parts and, in front of them, the body in its colour."""
        pale, strong = (np.rint(level / BODY_LEVEL * (TINTS - 1)).astype(np.uint8) for level in (grey, body))
        picture = Image.fromarray(np.where(strong > 0, strong + np.uint8(TINTS * self.colours.index(colour)), pale))
        picture.putpalette(self._rgb_values())
        return picture

    def _rgb_values(self) -> list[int]:
        tints = [tint(colour, level / (TINTS - 1)) for colour in self.colours for level in range(TINTS)]
        return [part for each in tints for part in ImageColor.getrgb(each)]


def _durations(frames: int, seconds: float) -> list[int]:
    # Durations in a GIF are multiples of 10 ms: rounding the times, not the durations, avoids a drift.
    return (10 * np.diff(np.rint(100.0 * seconds * np.arange(frames + 1)))).astype(int).tolist()


def _encode_gif(pictures: Sequence[Image.Image], milliseconds: Sequence[int]) -> bytes:
    buffer = io.BytesIO()
    first, *others = pictures
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=milliseconds, loop=0, optimize=False)
    return buffer.getvalue()
