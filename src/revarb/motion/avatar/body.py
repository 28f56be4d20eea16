"""From the model's outputs to places in space: the subject's body on a treadmill."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from revarb.motion import cmu35
from revarb.motion.kinematics import Motion, Skeleton


@dataclass(frozen=True, eq=False)
class Body:
    """A skeleton that is asked for many single poses: what `cmu35.pose` reads from files is read once.

    still    a frame with the channels that the model does not move
    columns  where in a frame the model's outputs go
    """

    skeleton: Skeleton
    still: Float64[np.ndarray, " C"]
    columns: tuple[int, ...]

    @staticmethod
    def of(channels: Sequence[str]) -> "Body":
        """The body that these outputs move; outputs that are no pose are refused."""
        rest = cmu35.pose(np.zeros((1, len(channels))), channels)
        columns = tuple(rest.skeleton.channels.index(name) for name in channels)
        return Body(rest.skeleton, rest.frames[0], columns)

    def joints(self, values: Float64[np.ndarray, "N Dy"]) -> Float64[np.ndarray, "N J 3"]:
        """Where the joints are, in metres: a pose per row, all above the same spot."""
        frames = np.tile(self.still, (len(values), 1))
        frames[:, self.columns] = values
        return Motion(self.skeleton, frames).joints() * self.skeleton.unit
