"""From the model's outputs to joint positions of the subject."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from revarb.motion import cmu35
from revarb.motion.kinematics import Motion, Skeleton


@dataclass(frozen=True, eq=False)
class Body:
    """The subject's skeleton, read once, for converting single poses (`cmu35.to_motion` reads the file every time).

    Attributes
    ----------
    skeleton : Skeleton
        The subject's skeleton.
    constants : array [C]
        A frame with the values of the channels that the model does not have.
    columns : tuple of int
        Columns of a frame to which the model's outputs belong.
    """

    skeleton: Skeleton
    constants: Float64[np.ndarray, " C"]
    columns: tuple[int, ...]

    @staticmethod
    def from_channels(channels: Sequence[str]) -> "Body":
        """Make the body for a model with these outputs; raises InputError unless they define a pose."""
        rest = cmu35.to_motion(np.zeros((1, len(channels))), channels)
        columns = tuple(rest.skeleton.channels.index(name) for name in channels)
        return Body(rest.skeleton, rest.frames[0], columns)

    def joints(self, values: Float64[np.ndarray, "N Dy"]) -> Float64[np.ndarray, "N J 3"]:
        """Joint positions in metres, one pose per row; the root does not move along the ground."""
        frames = np.tile(self.constants, (len(values), 1))
        frames[:, self.columns] = values
        return Motion(self.skeleton, frames).joints() * self.skeleton.metres_per_unit
