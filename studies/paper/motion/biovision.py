"""Write motions in Biovision's format (BVH), which Blender and most animation programs import.

A BVH joint is the start of a bone and its rotation moves the bone and its descendants, whereas `Motion.joints` gives
the ends of bones. Every bone becomes a joint of the same name, whose OFFSET is the offset of its parent bone; a bone
without children ends in an End Site. Siblings start at the same point, the children of the root at the root.
"""

import os
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from studies.output import write_file
from studies.paper.motion.kinematics import Bone, Motion, Skeleton

POSITION = "Xposition Yposition Zposition"
ROTATION = "Zrotation Xrotation Yrotation"
CENTIMETRES = 100.0  # per metre


def write_bvh(path: str | os.PathLike[str], motion: Motion, dt: float) -> Path:
    """Write a motion to a BVH file, `dt` seconds between frames.

    Lengths are in centimetres, as is usual in BVH (import into Blender with scale 0.01 to get metres), y is up. Angles
    are in degrees about z, x and y of the skeleton's frame: in BVH, bones have no frames of their own.
    """
    lines = ["HIERARCHY", *_joint(motion.skeleton, 0), "MOTION", f"Frames: {len(motion.frames)}"]
    lines.append(f"Frame Time: {dt!r}")
    lines += [_numbers(row) for row in _channels(motion)]
    return write_file(path, ("\n".join(lines) + "\n").encode())


def _joint(skeleton: Skeleton, index: int) -> list[str]:
    """Lines of a joint and of its descendants."""
    bone = skeleton.bones[index]
    if bone.parent is None:
        lines = [f"ROOT {bone.name}", "{", _offset(bone, skeleton), f"\tCHANNELS 6 {POSITION} {ROTATION}"]
    else:
        parent = skeleton.bones[bone.parent]
        lines = [f"JOINT {bone.name}", "{", _offset(parent, skeleton), f"\tCHANNELS 3 {ROTATION}"]
    below = [line for child in skeleton.children(index) for line in _joint(skeleton, child)]
    below = below or ["End Site", "{", _offset(bone, skeleton), "}"]
    return [*lines, *(f"\t{line}" for line in below), "}"]


def _offset(bone: Bone, skeleton: Skeleton) -> str:
    return f"\tOFFSET {_numbers(bone.offset * skeleton.metres_per_unit * CENTIMETRES)}"


def _channels(motion: Motion) -> Float64[np.ndarray, "T C"]:
    """One row per frame: position of the root, then the angles of all joints in the order of the hierarchy."""
    rotations = motion.rotations()
    angles = [_angles(rotations[index]) for index in _depth_first(motion.skeleton, 0)]
    return np.column_stack([motion.root * motion.skeleton.metres_per_unit * CENTIMETRES, *angles])


def _depth_first(skeleton: Skeleton, index: int) -> list[int]:
    descendants = [each for child in skeleton.children(index) for each in _depth_first(skeleton, child)]
    return [index, *descendants]


def _angles(rotations: Float64[np.ndarray, "T 3 3"]) -> Float64[np.ndarray, "T 3"]:
    """Euler angles in degrees about z, x and y: R = R_z R_x R_y."""
    z = np.arctan2(-rotations[:, 0, 1], rotations[:, 1, 1])
    x = np.arctan2(rotations[:, 2, 1], np.hypot(rotations[:, 0, 1], rotations[:, 1, 1]))
    # In a gimbal lock z is arbitrary. Computing y from R_z(z)^T R keeps the product right for any z.
    remaining = np.cos(z)[:, None] * rotations[:, 0] + np.sin(z)[:, None] * rotations[:, 1]
    y = np.arctan2(remaining[:, 2], remaining[:, 0])
    # Readers interpolate angles linearly between frames, so there must be no jumps from 180 to -180.
    return np.unwrap(np.degrees(np.stack([z, x, y], axis=1)), period=360.0, axis=0)


def _numbers(values: Float64[np.ndarray, "_"]) -> str:
    # Adding 0.0 turns -0.0 into 0.0.
    return " ".join(f"{value:.6f}" for value in np.round(values, 6) + 0.0)
