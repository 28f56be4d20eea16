"""The body as solids: a stick per bone, a ball per joint, and how they lie in a pose. Metres, colours, no browser."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64, UInt8
from matplotlib.colors import to_rgb

from revarb.motion.kinematics import Skeleton
from revarb.motion.strip import HEAD_SIZE, Side, bones_by_side, heads, tint

SHADES: Mapping[Side, float] = {"left": 0.6, "middle": 0.8, "right": 1.0}  # light bleaches: deeper than on paper


THICKNESS = 0.11  # a stick's radius, in its lengths


THINNEST, THICKEST = 0.012, 0.032  # metres


TINY = 1e-9


Pose = Float64[np.ndarray, "J 3"]


@dataclass(frozen=True, eq=False)
class Solids:
    """Copies of a thing, each halfway between two joints, which may be the same; `sizes` are along x, y and z."""

    ends: Int64[np.ndarray, "S 2"]
    sizes: Float64[np.ndarray, "S 3"]
    colours: UInt8[np.ndarray, "S 3"]

    def middles(self, joints: Pose) -> Float64[np.ndarray, "S 3"]:
        """Where they are."""
        return joints[self.ends].mean(axis=1)

    def turns(self, joints: Pose) -> Float64[np.ndarray, "S 4"]:
        """How they are turned for their z axis to lie along their ends: quaternions, the real part first."""
        return turned_to(joints[self.ends[:, 0]] - joints[self.ends[:, 1]])


@dataclass(frozen=True, eq=False)
class Shape:
    """Sticks of length 1 and radius 1 along z, balls of radius 1, before they get their sizes."""

    sticks: Solids
    balls: Solids

    @staticmethod
    def of(skeleton: Skeleton, colour: str) -> "Shape":
        """The shape of a skeleton in a colour: the left side pale, the right side full."""
        sides = bones_by_side(skeleton)
        ends = np.array([bone for several in sides.values() for bone in several])
        colours = _bytes([tint(colour, SHADES[side]) for side, several in sides.items() for _ in several])
        lengths = skeleton.unit * np.array([skeleton.bones[joint].length for joint in ends[:, 0]])
        radii = np.clip(THICKNESS * lengths, THINNEST, THICKEST)
        head = np.array(heads(skeleton), dtype=np.int64).reshape(-1, 2)
        head_radii = np.array([HEAD_SIZE * skeleton.unit * skeleton.bones[joint].length for joint in head[:, 0]])
        head_colours = _bytes([tint(colour, SHADES["middle"])] * len(head))
        balls = Solids(
            np.concatenate([ends[:, [0, 0]], ends[:, [1, 1]], head]),
            np.tile(np.concatenate([radii, radii, head_radii])[:, None], 3),
            np.concatenate([colours, colours, head_colours]),
        )
        return Shape(Solids(ends, np.stack([radii, radii, lengths], axis=1), colours), balls)


def turned_to(directions: Float64[np.ndarray, "S 3"]) -> Float64[np.ndarray, "S 4"]:
    """The shortest turns of the z axis into these directions; where one has no length, none."""
    x, y, z = (directions / np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), TINY)).T
    turns = np.stack([1.0 + z, -y, x, np.zeros_like(z)], axis=1)
    turns[1.0 + z < TINY] = [0.0, 1.0, 0.0, 0.0]  # straight back: half a turn about x
    return turns / np.linalg.norm(turns, axis=1, keepdims=True)


def rgb(colour: str) -> tuple[int, int, int]:
    """A colour's parts from 0 to 255."""
    red, green, blue = (round(255 * part) for part in to_rgb(colour))
    return red, green, blue


def _bytes(colours: list[str]) -> UInt8[np.ndarray, "S 3"]:
    return np.array([rgb(colour) for colour in colours], dtype=np.uint8).reshape(-1, 3)
