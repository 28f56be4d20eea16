"""Motion capture: read and write skeletons and motions (ASF, AMC, BVH), forward kinematics.

Examples
--------
A skeleton of a root and one arm, raised in the second frame:

>>> import numpy as np
>>> from revarb.datasets import mocap
>>> root = mocap.Bone("root", None, (0.0, 0.0, 0.0), 0.0, (0.0, 0.0, 0.0), ("tx", "ty", "tz", "rx", "ry", "rz"))
>>> arm = mocap.Bone("arm", 0, (1.0, 0.0, 0.0), 2.0, (0.0, 0.0, 0.0), ("rz",))
>>> motion = mocap.Motion(mocap.Skeleton((root, arm), scale=1.0), np.array([[0.0] * 7, [0.0] * 6 + [90.0]]))
>>> motion.joints()[:, 1].round(6).tolist()
[[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
"""

from revarb.motion.acclaim import read_motion, read_skeleton, write_motion, write_skeleton
from revarb.motion.biovision import write_bvh
from revarb.motion.kinematics import Bone, Motion, Skeleton

__all__ = ["Bone", "Motion", "Skeleton", "read_motion", "read_skeleton", "write_bvh", "write_motion", "write_skeleton"]
