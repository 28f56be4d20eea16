"""Skeletons, motions, and where the joints are: forward kinematics.

Angles are in degrees and lengths in the skeleton's own units, as the files have them (acclaim.py).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError

ROOT_CHANNELS = ("tx", "ty", "tz", "rx", "ry", "rz")


AXES = ("rx", "ry", "rz")


METRES_PER_INCH = 0.0254


Vector3 = tuple[float, float, float]


@dataclass(frozen=True)
class Bone:
    """A bone: where it points and how long it is at rest, the frame it turns in, and the channels that turn it.

    parent     position of its parent among the bones; the root has none
    direction  unit vector at rest, in the skeleton's frame
    axis       the angles (about x, then y, then z) of the frame that its own angles are given in
    channels   a selection of rx, ry, rz; the root has a position as well
    """

    name: str
    parent: int | None
    direction: Vector3
    length: float
    axis: Vector3
    channels: tuple[str, ...]

    @property
    def reach(self) -> Float64[np.ndarray, "3"]:
        """From where it begins to where it ends, at rest; the root is a point."""
        return np.zeros(3) if self.parent is None else self.length * np.array(self.direction)


@dataclass(frozen=True)
class Skeleton:
    """Bones in the order of their file, the root first. `scale`: so many of its units are an inch."""

    bones: tuple[Bone, ...]
    scale: float

    @property
    def unit(self) -> float:
        """One of its units in metres."""
        return METRES_PER_INCH / self.scale

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the bones."""
        return tuple(bone.name for bone in self.bones)

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of all channels, such as "lfemur.rx"."""
        return tuple(f"{bone.name}.{channel}" for bone in self.bones for channel in bone.channels)

    def children(self, position: int) -> list[int]:
        """Positions of the bones that begin where this one ends."""
        return [child for child, bone in enumerate(self.bones) if bone.parent == position]


@dataclass(frozen=True, eq=False)
class Motion:
    """Frames of a skeleton: one row each, one column per channel."""

    skeleton: Skeleton
    frames: Float64[np.ndarray, "T C"]

    def __post_init__(self):
        channels = len(self.skeleton.channels)
        if self.frames.ndim != 2 or self.frames.shape[1] != channels:
            raise InputError(f"frames must be [T, {channels}] for this skeleton, received {self.frames.shape}")
        if not np.isfinite(self.frames).all():
            raise InputError("frames must be finite numbers")

    def every(self, step: int) -> "Motion":
        """Every `step`-th frame, the first one included."""
        return Motion(self.skeleton, self.frames[::step])

    @property
    def root(self) -> Float64[np.ndarray, "T 3"]:
        """Where the root is."""
        return self.frames[:, :3]

    def joints(self) -> Float64[np.ndarray, "T B 3"]:
        """Where every bone ends (and the root is), in the skeleton's units: y is up, the subject walks along z.

        From the root outwards, every bone turned by its angles inside the frame of its parent.
        """
        turns: list[np.ndarray] = []
        ends: list[np.ndarray] = []
        for bone, turn in zip(self.skeleton.bones, self.turns(), strict=True):
            if bone.parent is None:
                turns.append(turn)
                ends.append(self.root)
            else:
                turns.append(turns[bone.parent] @ turn)
                ends.append(ends[bone.parent] + turns[-1] @ bone.reach)
        return np.stack(ends, axis=1)

    def turns(self) -> list[Float64[np.ndarray, "T 3 3"]]:
        """How every bone is turned against its parent, the root against the world, in the skeleton's frame."""
        sizes = [len(bone.channels) for bone in self.skeleton.bones]
        by_bone = np.split(self.frames, np.cumsum(sizes)[:-1], axis=1)
        return [_turn(bone, values) for bone, values in zip(self.skeleton.bones, by_bone, strict=True)]


def _turn(bone: Bone, values: np.ndarray) -> np.ndarray:
    angles = np.zeros((len(values), 3))
    for column, channel in enumerate(bone.channels):
        if channel in AXES:
            angles[:, AXES.index(channel)] = values[:, column]
    frame = _rotation(np.array([bone.axis]))[0]
    return frame @ _rotation(angles) @ frame.T


def _rotation(degrees: Float64[np.ndarray, "T 3"]) -> Float64[np.ndarray, "T 3 3"]:
    # About x first, then y, then z.
    (cx, cy, cz), (sx, sy, sz) = np.cos(np.radians(degrees)).T, np.sin(np.radians(degrees)).T
    rows = [
        [cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz],
        [cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz],
        [-sy, sx * cy, cx * cy],
    ]
    return np.moveaxis(np.array(rows), -1, 0)
