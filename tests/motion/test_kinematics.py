"""Joints of a skeleton from its angles."""

import numpy as np
import pytest

from revarb.errors import InputError
from revarb.motion.kinematics import Motion
from support.bodies import ARM, ARM_FRAMES


def test_an_arm_bends_where_it_should():
    joints = Motion(ARM, ARM_FRAMES[:1]).joints()[0]
    np.testing.assert_allclose(joints, [[1, 2, 3], [1, 4, 3], [1, 5, 3]], atol=1e-12)
    # The lower arm's own frame is turned by 90° about z, so its rx turns about the skeleton's y.
    bent = ARM_FRAMES[:1].copy()
    bent[0, 6:8] = 0.0, 90.0
    np.testing.assert_allclose(Motion(ARM, bent).joints()[0, 2], [3, 2, 2], atol=1e-12)
    turned = ARM_FRAMES[:1].copy()
    turned[0, 3:7] = 0.0, 0.0, 90.0, 0.0
    np.testing.assert_allclose(Motion(ARM, turned).joints()[0, 1:], [[1, 4, 3], [1, 5, 3]], atol=1e-12)


def test_angles_turn_about_x_then_y_then_z():
    """Against rotation matrices written out one by one."""
    angles = np.radians([20.0, -35.0, 50.0])
    c, s = np.cos(angles), np.sin(angles)
    about_x = np.array([[1, 0, 0], [0, c[0], -s[0]], [0, s[0], c[0]]])
    about_y = np.array([[c[1], 0, s[1]], [0, 1, 0], [-s[1], 0, c[1]]])
    about_z = np.array([[c[2], -s[2], 0], [s[2], c[2], 0], [0, 0, 1]])
    frame = np.array([[0.0, 0.0, 0.0, 20.0, -35.0, 50.0, 0.0, 0.0, 0.0]])
    upper = Motion(ARM, frame).joints()[0, 1]
    np.testing.assert_allclose(upper, about_z @ about_y @ about_x @ np.array([2.0, 0.0, 0.0]), atol=1e-12)


def test_frames_must_fit_the_skeleton():
    with pytest.raises(InputError, match=r"frames must be \[T, 9\] for this skeleton, received \(2, 8\)"):
        Motion(ARM, ARM_FRAMES[:, :8])
