"""Motion capture: skeletons and motions in Acclaim's format (ASF, AMC), forward kinematics, and Biovision's BVH."""

from revarb.motion.acclaim import read_motion, read_skeleton, write_motion, write_skeleton
from revarb.motion.biovision import write_bvh
from revarb.motion.kinematics import Bone, Motion, Skeleton

__all__ = ["Bone", "Motion", "Skeleton", "read_motion", "read_skeleton", "write_bvh", "write_motion", "write_skeleton"]
