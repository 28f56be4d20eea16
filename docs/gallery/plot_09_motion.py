"""
Motion
======

A skeleton whose joint angles follow one input. The paper's Table 2 learns 57 joint angles of recorded walks and runs
(``revarb reproduce table2``); this example has a leg of three bones that kicks in a rhythm, so that no recorded data
are needed.
"""

import numpy as np

import revarb
from revarb.datasets.mocap import Bone, Motion, Skeleton
from revarb.motion.strip import draw_strip

# %%
# A skeleton: a fixed hip, thigh, shank and foot, all of which turn about the x axis. Lengths are in inches.
none = (0.0, 0.0, 0.0)
root = Bone("root", None, none, 0.0, none, ("tx", "ty", "tz", "rx", "ry", "rz"))
thigh = Bone("rfemur", 0, (0.0, -1.0, 0.0), 17.0, none, ("rx",))
shank = Bone("rtibia", 1, (0.0, -1.0, 0.0), 17.0, none, ("rx",))
foot = Bone("rfoot", 2, (0.0, 0.0, 1.0), 8.0, none, ("rx",))
skeleton = Skeleton((root, thigh, shank, foot), scale=1.0)

# %%
# "Measured" motions: the drive is a wave of changing amplitude, the joints follow with a lag of their own and limits.


def move(samples, seed):
    """A drive signal and the angles (degrees) of hip, knee and ankle that follow it."""
    rng = np.random.default_rng(seed)
    amplitude = np.repeat(rng.uniform(0.3, 1.0, samples // 25 + 1), 25)[:samples]
    drive = amplitude * np.sin(2.0 * np.pi * np.arange(samples) / rng.uniform(18.0, 26.0))
    angles = np.zeros((samples, 3))
    for k in range(1, samples):
        angles[k, 0] = 0.8 * angles[k - 1, 0] - 10.0 * drive[k - 1]
        angles[k, 1] = 0.7 * angles[k - 1, 1] + 14.0 * max(drive[k - 1], 0.0) + 0.05 * angles[k - 1, 0]
        angles[k, 2] = 0.6 * angles[k - 1, 2] - 0.15 * angles[k - 1, 1]
    return drive, angles + 0.5 * rng.standard_normal(angles.shape)


names = {"input_names": ["drive"], "output_names": ["hip", "knee", "ankle"]}
train = [revarb.Series(*move(90, seed), dt=1 / 30, **names) for seed in range(3)]
drive, angles = move(90, seed=7)

# %%
# One latent chain for all joints.
spec = revarb.RGP(lags=4, input_lags=4, hidden=1, inducing=40, latent_dim=2, calibrate=False)
model = spec.fit(train, seed=0)
path = model.simulate(drive)
print(revarb.scores(path, angles))
figure = path.plot(measured=angles, title="Joint angles in degrees")

# %%
# Forward kinematics turns angles into positions; a strip shows both motions as poses.


def to_joints(values):
    """Positions of all joints [T, B, 3] for angles [T, 3], with the hip at rest."""
    hip = np.tile([0.0, 36.0, 0.0, 0.0, 0.0, 0.0], (len(values), 1))
    return Motion(skeleton, np.hstack([hip, values])).joints()


strips = {"measured": to_joints(angles), "simulated": to_joints(path.mean)}
strip = draw_strip(strips, skeleton, "A leg", dt=1 / 30, poses=14)
