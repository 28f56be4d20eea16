"""Small skeletons and motions, and a reader of BVH files."""

import numpy as np

from studies.paper.motion.kinematics import ROOT_CHANNELS, Bone, Motion, Skeleton

ROOT = Bone("root", None, (0.0, 0.0, 0.0), 0.0, (0.0, 0.0, 0.0), ROOT_CHANNELS)
ARM = Skeleton(
    (
        ROOT,
        Bone("upper", 0, (1.0, 0.0, 0.0), 2.0, (0.0, 0.0, 0.0), ("rz",)),
        Bone("lower", 1, (1.0, 0.0, 0.0), 1.0, (0.0, 0.0, 90.0), ("rx", "ry")),
    ),
    0.45,
)
ARM_FRAMES = np.array(
    [[1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 90.0, 0.0, 0.0], [0.1, 1 / 3, 1e-17, 5.0, 6.0, 7.0, 8.0, 9.0, -1.5]]
)
STRIDE_FRAMES, DT = 30, 1 / 30
BODY = Skeleton(
    (
        ROOT,
        Bone("lleg", 0, (0.2, -0.9, 0.0), 16.0, (0.0, 0.0, 0.0), ("rx",)),
        Bone("rleg", 0, (-0.2, -0.9, 0.0), 16.0, (0.0, 0.0, 0.0), ("rx",)),
        Bone("lowerback", 0, (0.0, 1.0, 0.0), 10.0, (0.0, 0.0, 0.0), ("rx",)),
        Bone("head", 3, (0.0, 1.0, 0.0), 2.0, (0.0, 0.0, 0.0), ()),
    ),
    0.45,
)


def stride(size=30.0, frames=STRIDE_FRAMES):
    """Joints of a body that walks along z, its legs swinging by `size` degrees."""
    time = np.arange(frames)
    values = np.zeros((frames, 9))
    values[:, 2] = 0.8 * time
    values[:, 6:8] = size * np.stack([np.sin(0.4 * time), -np.sin(0.4 * time)], axis=1)
    return Motion(BODY, values).joints()


WALK, RUN = "#1f5fa8", "#c1272d"


def read_bvh(path):
    """Joints in the order of the file (name, parent, offset, channels; End Sites have none), the frame time, rows."""
    words = path.read_text().split()
    joints, open_joints, place = [], [], 1
    assert words[0] == "HIERARCHY"
    while words[place] != "MOTION":
        if words[place] in ("ROOT", "JOINT", "End"):
            name = words[place + 1] if words[place] != "End" else f"end of {joints[open_joints[-1]][0]}"
            assert words[place + 2 : place + 4] == ["{", "OFFSET"]
            offset = np.array([float(word) for word in words[place + 4 : place + 7]])
            place += 7
            count = int(words[place + 1]) if words[place] == "CHANNELS" else 0
            channels = words[place + 2 : place + 2 + count]
            place += 2 + count if count else 0
            joints.append((name, open_joints[-1] if open_joints else None, offset, channels))
            open_joints.append(len(joints) - 1)
        else:
            assert words[place] == "}"
            open_joints.pop()
            place += 1
    assert not open_joints and words[place + 1] == "Frames:" and words[place + 3 : place + 5] == ["Frame", "Time:"]
    rows = np.array([float(word) for word in words[place + 6 :]]).reshape(int(words[place + 2]), -1)
    return joints, float(words[place + 5]), rows


def count_of(colour, pixels):
    """Pixels of this colour, such as "#c1272d"."""
    wanted = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
    return int((np.abs(pixels - wanted).max(axis=-1) < 6).sum())
