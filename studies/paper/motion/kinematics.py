"""Skeletons, motions and forward kinematics.

Angles are in degrees and lengths in the skeleton's own units, as in ASF and AMC files (motion_files.py).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.spatial.transform import Rotation

from revarb import InputError

ROOT_CHANNELS = ("tx", "ty", "tz", "rx", "ry", "rz")
AXES = ("rx", "ry", "rz")
METRES_PER_INCH = 0.0254

Vector3 = tuple[float, float, float]


@dataclass(frozen=True)
class Bone:
    """A bone: its direction and length at rest, the frame of its angles, and the channels that rotate it.

    Attributes
    ----------
    name : str
        Name of the bone.
    parent : int or None
        Index of its parent among the bones; None for the root.
    direction : tuple of 3 floats
        Unit vector at rest, in the skeleton's frame.
    length : float
        Length in the skeleton's units.
    axis : tuple of 3 floats
        Angles (about x, then y, then z) of the frame in which its own angles are given.
    channels : tuple of str
        Some of rx, ry, rz; for the root tx, ty, tz as well.
    """

    name: str
    parent: int | None
    direction: Vector3
    length: float
    axis: Vector3
    channels: tuple[str, ...]

    @property
    def offset(self) -> Float64[np.ndarray, "3"]:
        """Vector from the start of the bone to its end, at rest; zero for the root."""
        return self.length * np.array(self.direction)


@dataclass(frozen=True)
class Skeleton:
    """Bones in the order of their file, the root first.

    Attributes
    ----------
    bones : tuple of Bone
        The bones; parents come before their children.
    scale : float
        Number of the skeleton's length units per inch.
    """

    bones: tuple[Bone, ...]
    scale: float

    @property
    def metres_per_unit(self) -> float:
        """Length of one of the skeleton's units in metres."""
        return METRES_PER_INCH / self.scale

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the bones."""
        return tuple(bone.name for bone in self.bones)

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of all channels, such as "lfemur.rx"."""
        return tuple(f"{bone.name}.{channel}" for bone in self.bones for channel in bone.channels)

    def children(self, index: int) -> list[int]:
        """Indices of the bones whose parent is the bone at `index`."""
        return [child for child, bone in enumerate(self.bones) if bone.parent == index]


@dataclass(frozen=True, eq=False)
class Motion:
    """Frames of a skeleton: one row per frame, one column per channel.

    Attributes
    ----------
    skeleton : Skeleton
        The skeleton that moves.
    frames : array [T, C]
        Positions (the skeleton's units) and angles (degrees), in the order of `skeleton.channels`.
    """

    skeleton: Skeleton
    frames: Float64[np.ndarray, "T C"]

    def __post_init__(self):
        channels = len(self.skeleton.channels)
        if self.frames.ndim != 2 or self.frames.shape[1] != channels:
            raise InputError(f"frames must be [T, {channels}] for this skeleton, received {self.frames.shape}")
        if not np.isfinite(self.frames).all():
            raise InputError("frames must be finite numbers")

    @property
    def root(self) -> Float64[np.ndarray, "T 3"]:
        """Position of the root, in the skeleton's units."""
        return self.frames[:, :3]

    def joints(self) -> Float64[np.ndarray, "T B 3"]:
        """Positions of the ends of all bones (of the root: its own), skeleton's units; y is up, the walk along z."""
        relative = self.rotations()
        rotations, ends = relative[:1], [self.root]  # in the world
        for bone, rotation in zip(self.skeleton.bones[1:], relative[1:], strict=True):
            rotations.append(rotations[bone.parent] @ rotation)
            ends.append(ends[bone.parent] + rotations[-1] @ bone.offset)
        return np.stack(ends, axis=1)

    def rotations(self) -> list[Float64[np.ndarray, "T 3 3"]]:
        """Rotation of every bone relative to its parent, of the root relative to the world, in the skeleton's frame."""
        sizes = [len(bone.channels) for bone in self.skeleton.bones]
        by_bone = np.split(self.frames, np.cumsum(sizes)[:-1], axis=1)
        return [_rotate_bone(bone, values) for bone, values in zip(self.skeleton.bones, by_bone, strict=True)]


def _rotate_bone(bone: Bone, values: np.ndarray) -> np.ndarray:
    angles = np.zeros((len(values), 3))
    for column, channel in enumerate(bone.channels):
        if channel in AXES:
            angles[:, AXES.index(channel)] = values[:, column]
    frame = _rotation_matrices(np.array([bone.axis]))[0]
    return frame @ _rotation_matrices(angles) @ frame.T


def _rotation_matrices(degrees: Float64[np.ndarray, "T 3"]) -> Float64[np.ndarray, "T 3 3"]:
    # About x first, then y, then z.
    return Rotation.from_euler("xyz", degrees, degrees=True).as_matrix()
