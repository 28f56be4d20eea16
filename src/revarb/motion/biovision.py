"""Motions in Biovision's format (BVH), which Blender and most other programs open.

A joint of BVH stands where a bone begins, and its turn moves what hangs on it; `Motion.joints` has where bones end. So
every bone is a joint of its own name, as far from its parent's joint as the parent bone reaches, and the bone ends
where its children stand, or at its End Site. Siblings stand at the same place, those of the root at the root.
"""

import os
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError, check_number
from revarb.motion.kinematics import Bone, Motion, Skeleton
from revarb.runtime.files import write_atomic

POSITION = "Xposition Yposition Zposition"


ROTATION = "Zrotation Xrotation Yrotation"


CENTIMETRES = 100.0  # per metre


def write_bvh(path: str | os.PathLike[str], motion: Motion, dt: float) -> Path:
    """Write a motion as a BVH file, whole or not at all; `dt` is the seconds from a frame to the next.

    Lengths are in centimetres, which is what Blender's users expect (import with a scale of 0.01 for metres), y is up.
    Angles are in degrees about z, x and y of the skeleton's frame: bones have no frames of their own in BVH.
    """
    _check(motion)
    lines = ["HIERARCHY", *_joint(motion.skeleton, 0), "MOTION", f"Frames: {len(motion.frames)}"]
    lines.append(f"Frame Time: {check_number('dt', dt, above=0.0)!r}")
    lines += [_numbers(row) for row in _channels(motion)]
    return write_atomic(path, ("\n".join(lines) + "\n").encode())


def _check(motion: Motion) -> None:
    if not len(motion.frames):
        raise InputError("there is no motion to write; it needs at least one frame")
    names = motion.skeleton.names
    for name in names:
        # Readers find joints by their names, which end at a space.
        if name.split() != [name] or names.count(name) > 1:
            raise InputError(f"in BVH every bone needs a name of its own, without spaces; received {name!r}")


def _joint(skeleton: Skeleton, position: int) -> list[str]:
    """The lines of a joint and of all that hangs on it."""
    bone = skeleton.bones[position]
    if bone.parent is None:
        lines = [f"ROOT {bone.name}", "{", _offset(bone, skeleton), f"\tCHANNELS 6 {POSITION} {ROTATION}"]
    else:
        parent = skeleton.bones[bone.parent]
        lines = [f"JOINT {bone.name}", "{", _offset(parent, skeleton), f"\tCHANNELS 3 {ROTATION}"]
    below = [line for child in skeleton.children(position) for line in _joint(skeleton, child)]
    below = below or ["End Site", "{", _offset(bone, skeleton), "}"]
    return [*lines, *(f"\t{line}" for line in below), "}"]


def _offset(bone: Bone, skeleton: Skeleton) -> str:
    return f"\tOFFSET {_numbers(bone.reach * skeleton.unit * CENTIMETRES)}"


def _channels(motion: Motion) -> Float64[np.ndarray, "T C"]:
    """A row per frame: where the root is, then the angles of all joints in the order of the hierarchy."""
    turns = motion.turns()
    angles = [_angles(turns[position]) for position in _outwards(motion.skeleton, 0)]
    return np.column_stack([motion.root * motion.skeleton.unit * CENTIMETRES, *angles])


def _outwards(skeleton: Skeleton, position: int) -> list[int]:
    below = [each for child in skeleton.children(position) for each in _outwards(skeleton, child)]
    return [position, *below]


def _angles(turns: Float64[np.ndarray, "T 3 3"]) -> Float64[np.ndarray, "T 3"]:
    """Degrees about z, x and y, whose rotations in this order, multiplied, are the turns."""
    z = np.arctan2(-turns[:, 0, 1], turns[:, 1, 1])
    x = np.arctan2(turns[:, 2, 1], np.hypot(turns[:, 0, 1], turns[:, 1, 1]))
    # In a gimbal lock z is anything: y is what remains of the turn when z is taken out, so that both are right.
    remaining = np.cos(z)[:, None] * turns[:, 0] + np.sin(z)[:, None] * turns[:, 1]
    y = np.arctan2(remaining[:, 2], remaining[:, 0])
    # Programs draw straight lines between frames: no jumps from 180 to -180.
    return np.unwrap(np.degrees(np.stack([z, x, y], axis=1)), period=360.0, axis=0)


def _numbers(values: Float64[np.ndarray, "_"]) -> str:
    # Zero has no sign.
    return " ".join(f"{value:.6f}" for value in np.round(values, 6) + 0.0)
