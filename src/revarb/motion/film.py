"""Films of skeletons: joints in, GIF bytes out. No computing, no files, no screen."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, cos, sin
from pathlib import Path

import numpy as np
from jaxtyping import Float64, UInt8
from matplotlib import get_data_path
from PIL import Image, ImageColor, ImageDraw, ImageFont

from revarb.errors import InputError, check_number
from revarb.motion.kinematics import Skeleton
from revarb.motion.strip import DEPTH, HEAD_SIZE, Joints, bones_by_side, colour_by_frame, heads, tint
from revarb.runtime.figure_style import MEASURED, MODEL

FASTEST = 15.0  # frames per second


SIZE = 320  # pixels, both ways


FINER = 3  # times as many pixels are drawn, for smooth edges


TITLE, LETTERS, BORDER = 26, 12, 8  # pixels: the title's room, how high letters are, what is left free beside them


YAW, TILT = 0.45, 0.14  # radians: from the subject's right, a little to the front and from above


MARGIN, THICKNESS = 0.08, 0.03  # metres: around the skeleton, of a bone


GRID = 1.0  # metres: a runner who passed more than half of it in a frame would seem to go backwards


FULL_INK, TEXT_INK, GROUND_INK = 255, 190, 90  # no ink is white


TINTS = 16  # of every colour


MOST_COLOURS = 256 // TINTS - 1  # a GIF has 256 in all, and grey is one


Pose = Float64[np.ndarray, "J 3"]


Ink = UInt8[np.ndarray, "N N"]


def film(joints: Joints, skeleton: Skeleton, dt: float, title: str = "", colours: Sequence[str] | None = None) -> bytes:
    """A motion as an animated GIF that plays at its own speed, again and again: at most 15 frames per second.

    `joints` are as `Motion.joints` gives them, `dt` seconds apart. The camera goes along with the root over lines on
    the ground, a metre apart. `colours` has one per frame: walking in one, running in another.
    """
    _check(joints, skeleton)
    step = max(1, ceil(1.0 / (FASTEST * check_number("dt", dt, above=0.0)) - 1e-6))
    by_frame = colour_by_frame("colours", colours, len(joints), MODEL)
    palette, metres = _Palette.of(by_frame), joints * skeleton.unit
    camera, shown = _Camera.around(metres), range(0, len(joints), step)
    pictures = []
    for frame in shown:
        grey = np.maximum(_text(title, frame * dt), _ground(camera, metres[frame, 0]))
        pictures.append(palette.picture(grey, _body(camera, metres[frame], skeleton), by_frame[frame]))
    return _gif(pictures, _durations(len(shown), step * dt))


def _check(joints: Joints, skeleton: Skeleton) -> None:
    wanted = f"[T, {len(skeleton.bones)}, 3], finite numbers"
    if not len(joints) or joints.shape[1] != len(skeleton.bones):
        raise InputError(f"the joints of a film must be {wanted}, T at least 1; they are {joints.shape}")
    if not np.isfinite(joints).all():
        raise InputError(f"the joints of a film must be {wanted}; some are not finite")


# --- space -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Camera:
    """Where a place is in the picture, in fine pixels; the same scale for all frames, so that nothing breathes.

    ground  the height of the lowest joint
    radius  how far from the root, along the ground, joints are at most
    scale   fine pixels per metre
    """

    ground: float
    radius: float
    scale: float

    @staticmethod
    def around(metres: Joints) -> "_Camera":
        aside = metres - metres[:, :1]
        radius = float(np.hypot(aside[..., 0], aside[..., 2]).max()) + MARGIN
        ground, top = float(metres[..., 1].min()), float(metres[..., 1].max())
        high = top - ground + 2 * MARGIN + radius * sin(TILT)
        return _Camera(ground, radius, FINER * min(SIZE / (2 * radius), (SIZE - TITLE) / high))

    def look(self, places: Float64[np.ndarray, "*N 3"], root: Float64[np.ndarray, "3"]) -> Float64[np.ndarray, "*N 3"]:
        """Right and down in the picture, and away from the eye. The walk goes along z, y is up."""
        ahead, left = places[..., 2] - root[2], places[..., 0] - root[0]
        away = left * cos(YAW) - ahead * sin(YAW)
        up = (places[..., 1] - self.ground) * cos(TILT) + away * sin(TILT)
        floor = FINER * SIZE - self.scale * (self.radius * sin(TILT) + MARGIN)
        right = FINER * SIZE / 2 + self.scale * (ahead * cos(YAW) + left * sin(YAW))
        return np.stack([right, floor - self.scale * up, away], axis=-1)

    @property
    def width(self) -> float:
        """Metres across the picture."""
        return FINER * SIZE / self.scale


# --- drawing ---------------------------------------------------------------------------------------------------------


def _ground(camera: _Camera, root: Float64[np.ndarray, "3"]) -> Ink:
    """A round piece of a grid that stays where it is while the root goes over it."""
    canvas, pen = _fine_canvas()
    radius = camera.width / 2
    for across, along in ((0, 2), (2, 0)):
        first, last = (root[across] - radius) / GRID, (root[across] + radius) / GRID
        for place in GRID * np.arange(ceil(first), last):
            half = np.sqrt(radius**2 - (place - root[across]) ** 2)
            ends = np.full((2, 3), camera.ground)
            ends[:, across], ends[:, along] = place, root[along] + [-half, half]
            pen.line(camera.look(ends, root)[:, :2].ravel().tolist(), GROUND_INK, FINER)
    return _ink(canvas.reduce(FINER))


def _body(camera: _Camera, pose: Pose, skeleton: Skeleton) -> Ink:
    canvas, pen = _fine_canvas()
    seen = camera.look(pose, pose[0])
    bones = [(*ends, DEPTH[side]) for side, several in bones_by_side(skeleton).items() for ends in several]
    for joint, parent, depth in sorted(bones, key=lambda bone: -seen[bone[0], 2] - seen[bone[1], 2]):
        ink, thickness = round(FULL_INK * depth), camera.scale * THICKNESS
        pen.line([*seen[joint, :2], *seen[parent, :2]], ink, round(thickness))
        for end in (joint, parent):  # round ends
            _disc(pen, seen[end], thickness / 2, ink)
    for joint, parent in heads(skeleton):
        radius = HEAD_SIZE * skeleton.bones[joint].length * skeleton.unit * camera.scale
        _disc(pen, (seen[joint] + seen[parent]) / 2, radius, round(FULL_INK * DEPTH["middle"]))
    return _ink(canvas.reduce(FINER))


def _disc(pen: ImageDraw.ImageDraw, centre: Float64[np.ndarray, "3"], radius: float, ink: int) -> None:
    right, down, _ = centre
    pen.ellipse((right - radius, down - radius, right + radius, down + radius), ink)


def _fine_canvas() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    canvas = Image.new("L", (FINER * SIZE, FINER * SIZE))
    return canvas, ImageDraw.Draw(canvas)


def _text(title: str, seconds: float) -> Ink:
    canvas = Image.new("L", (SIZE, SIZE))
    pen, one_line = ImageDraw.Draw(canvas), " ".join(title.split())
    font = ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), LETTERS)
    too_long = max(1.0, font.getlength(one_line) / (SIZE - 2 * BORDER))
    pen.text((BORDER, BORDER), one_line, TEXT_INK, font.font_variant(size=max(1, int(LETTERS / too_long))))
    pen.text((SIZE - BORDER, BORDER + 2 * LETTERS), f"{seconds:.2f} s", TEXT_INK, font, anchor="rt")
    return _ink(canvas)


def _ink(canvas: Image.Image) -> Ink:
    return np.asarray(canvas)


# --- film ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Palette:
    """Tints of grey and of every colour of the film, from white to the full colour."""

    colours: tuple[str, ...]

    @staticmethod
    def of(colours: Sequence[str]) -> "_Palette":
        different = tuple(dict.fromkeys([MEASURED, *colours]))
        if len(different) > MOST_COLOURS + 1:
            raise InputError(f"a film has at most {MOST_COLOURS} different colours, received {len(different) - 1}")
        return _Palette(different)

    def picture(self, grey: Ink, body: Ink, colour: str) -> Image.Image:
        """Grey ink and, over it, the body's in its colour."""
        pale, strong = (np.rint(ink / FULL_INK * (TINTS - 1)).astype(np.uint8) for ink in (grey, body))
        picture = Image.fromarray(np.where(strong > 0, strong + np.uint8(TINTS * self.colours.index(colour)), pale))
        picture.putpalette(self._parts())
        return picture

    def _parts(self) -> list[int]:
        tints = [tint(colour, level / (TINTS - 1)) for colour in self.colours for level in range(TINTS)]
        return [part for each in tints for part in ImageColor.getrgb(each)]


def _durations(frames: int, seconds: float) -> list[int]:
    # A GIF counts hundredths: what one frame is too short the next is longer, so that the film keeps its time.
    return (10 * np.diff(np.rint(100.0 * seconds * np.arange(frames + 1)))).astype(int).tolist()


def _gif(pictures: Sequence[Image.Image], milliseconds: Sequence[int]) -> bytes:
    buffer = io.BytesIO()
    first, *others = pictures
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=milliseconds, loop=0, optimize=False)
    return buffer.getvalue()
