"""Joints, cylinders and spheres of the avatar's body."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from revarb.motion import cmu35
from revarb.motion.avatar.body import Body
from revarb.motion.avatar.live_avatar import LiveAvatar
from revarb.motion.avatar.shape import SHADES, Shape, rotate_z_to, to_rgb_bytes
from revarb.motion.strip import tint
from revarb.runtime.figure_style import MODEL
from support.avatars import gaits, trained

LEFT_FOOT = "lfoot"


@pytest.fixture
def model(recorded_data):
    return trained()


@pytest.fixture
def avatar(model):
    return LiveAvatar(model, gaits())


def test_a_body_has_the_poses_of_the_recorded_motion(recorded_data):
    record = cmu35.load_speed_series(17)
    poses = cmu35.to_motion(record.y, record.output_names)
    expected = poses.joints() * poses.skeleton.metres_per_unit
    np.testing.assert_allclose(Body.from_channels(record.output_names).joints(record.y), expected, atol=1e-12)


def test_turns_bring_z_into_every_direction(rng):
    directions = np.concatenate([rng.normal(size=(50, 3)), [[0, 0, 2.0], [0, 0, -3.0], [1e-12, 0, -1], [0, 0, 0]]])
    turns = rotate_z_to(directions)
    np.testing.assert_allclose(np.linalg.norm(turns, axis=1), 1.0)
    turned = Rotation.from_quat(turns[:-1], scalar_first=True).apply([0.0, 0.0, 1.0])
    lengths = np.linalg.norm(directions[:-1], axis=1, keepdims=True)
    np.testing.assert_allclose(turned, directions[:-1] / lengths, atol=1e-9)
    np.testing.assert_array_equal(turns[-1], [1.0, 0.0, 0.0, 0.0])


def test_sticks_reach_from_joint_to_joint_and_sides_have_their_colours(avatar):
    joints, body = avatar.tick().joints, avatar.body.skeleton
    cylinders, spheres = Shape.from_skeleton(body, MODEL).cylinders, Shape.from_skeleton(body, MODEL).spheres
    half = (
        0.5
        * cylinders.sizes[:, 2:]
        * Rotation.from_quat(cylinders.quaternions(joints), scalar_first=True).apply([0, 0, 1.0])
    )
    np.testing.assert_allclose(cylinders.centres(joints) + half, joints[cylinders.ends[:, 0]], atol=1e-6)
    np.testing.assert_allclose(cylinders.centres(joints) - half, joints[cylinders.ends[:, 1]], atol=1e-6)
    foot = body.names.index(LEFT_FOOT)
    (which,) = np.flatnonzero(cylinders.ends[:, 0] == foot)
    assert tuple(cylinders.colours[which]) == to_rgb_bytes(tint(MODEL, SHADES["left"]))
    assert len(spheres.sizes) == 2 * len(cylinders.sizes) + 1 and spheres.sizes.max() == spheres.sizes[-1].max() > 0.08
