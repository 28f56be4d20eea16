"""The body as meshes: a cylinder per bone, a sphere per joint, their positions and rotations in a pose (metres)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64, UInt8
from matplotlib.colors import to_rgb

from studies.paper.motion.kinematics import Skeleton
from studies.paper.motion.strip import HEAD_SIZE, Side, find_heads, group_bones, tint

SHADES: Mapping[Side, float] = {"left": 0.6, "middle": 0.8, "right": 1.0}  # darker than in figures: lighting adds white
THICKNESS = 0.11  # radius of a cylinder relative to its length
MIN_RADIUS, MAX_RADIUS = 0.012, 0.032  # metres
TINY = 1e-9

Pose = Float64[np.ndarray, "J 3"]


@dataclass(frozen=True, eq=False)
class Solids:
    """Scaled copies of one mesh, each centred between two joints.

    Attributes
    ----------
    ends : array of int [S, 2]
        Indices of the two joints, which may be equal.
    sizes : array [S, 3]
        Scales along x, y and z.
    colours : array of uint8 [S, 3]
        RGB colours.
    """

    ends: Int64[np.ndarray, "S 2"]
    sizes: Float64[np.ndarray, "S 3"]
    colours: UInt8[np.ndarray, "S 3"]

    def centres(self, joints: Pose) -> Float64[np.ndarray, "S 3"]:
        """Positions of the copies in a pose."""
        return joints[self.ends].mean(axis=1)

    def quaternions(self, joints: Pose) -> Float64[np.ndarray, "S 4"]:
        """Rotations that align the z axes with the lines between the joints: quaternions, the real part first."""
        return rotate_z_to(joints[self.ends[:, 0]] - joints[self.ends[:, 1]])


@dataclass(frozen=True, eq=False)
class Shape:
    """A body: cylinders (length 1 and radius 1 along z, before scaling) and spheres (radius 1)."""

    cylinders: Solids
    spheres: Solids

    @staticmethod
    def from_skeleton(skeleton: Skeleton, colour: str) -> "Shape":
        """Make the shape of a skeleton in a colour: the left side light, the right side dark."""
        sides = group_bones(skeleton)
        ends = np.array([bone for several in sides.values() for bone in several])
        colours = _rgb_rows([tint(colour, SHADES[side]) for side, several in sides.items() for _ in several])
        lengths = skeleton.metres_per_unit * np.array([skeleton.bones[joint].length for joint in ends[:, 0]])
        radii = np.clip(THICKNESS * lengths, MIN_RADIUS, MAX_RADIUS)
        head = np.array(find_heads(skeleton), dtype=np.int64).reshape(-1, 2)
        head_radii = np.array(
            [HEAD_SIZE * skeleton.metres_per_unit * skeleton.bones[joint].length for joint in head[:, 0]]
        )
        head_colours = _rgb_rows([tint(colour, SHADES["middle"])] * len(head))
        spheres = Solids(
            np.concatenate([ends[:, [0, 0]], ends[:, [1, 1]], head]),
            np.tile(np.concatenate([radii, radii, head_radii])[:, None], 3),
            np.concatenate([colours, colours, head_colours]),
        )
        return Shape(Solids(ends, np.stack([radii, radii, lengths], axis=1), colours), spheres)


def rotate_z_to(directions: Float64[np.ndarray, "S 3"]) -> Float64[np.ndarray, "S 4"]:
    """Quaternions of the shortest rotations of the z axis to these directions; the identity for a zero vector."""
    x, y, z = (directions / np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), TINY)).T
    quaternions = np.stack([1.0 + z, -y, x, np.zeros_like(z)], axis=1)
    quaternions[1.0 + z < TINY] = [0.0, 1.0, 0.0, 0.0]  # opposite to z: half a turn about x
    return quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)


def to_rgb_bytes(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of a colour, from 0 to 255."""
    red, green, blue = (round(255 * part) for part in to_rgb(colour))
    return red, green, blue


def _rgb_rows(colours: list[str]) -> UInt8[np.ndarray, "S 3"]:
    return np.array([to_rgb_bytes(colour) for colour in colours], dtype=np.uint8).reshape(-1, 3)
