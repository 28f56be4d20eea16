"""Skeletons and their joints, the recorded motions of subject 35, gaits and speed signals, and the body's meshes."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from revarb import InputError
from studies.output import MODEL
from studies.paper.motion import cmu35
from studies.paper.motion.avatar_model import Gaits, find_phases, make_speed_signals
from studies.paper.motion.kinematics import Motion
from studies.paper.motion.live_avatar import Body, Recording
from studies.paper.motion.shape import SHADES, Shape, to_rgb_bytes
from studies.paper.motion.strip import tint
from support.bodies import ARM, ARM_FRAMES


def test_an_arm_bends_where_it_should():
    np.testing.assert_allclose(Motion(ARM, ARM_FRAMES[:1]).joints()[0], [[1, 2, 3], [1, 4, 3], [1, 5, 3]], atol=1e-12)
    # The lower arm's own frame is turned by 90° about z, so its rx turns about the skeleton's y.
    bent = ARM_FRAMES[:1].copy()
    bent[0, 6:8] = 0.0, 90.0
    np.testing.assert_allclose(Motion(ARM, bent).joints()[0, 2], [3, 2, 2], atol=1e-12)


def test_angles_turn_about_x_then_y_then_z():
    frame = np.array([[0.0, 0.0, 0.0, 20.0, -35.0, 50.0, 0.0, 0.0, 0.0]])
    expected = Rotation.from_euler("xyz", [20.0, -35.0, 50.0], degrees=True).apply([2.0, 0.0, 0.0])
    np.testing.assert_allclose(Motion(ARM, frame).joints()[0, 1], expected, atol=1e-12)
    with pytest.raises(InputError, match=r"frames must be \[T, 9\] for this skeleton, received \(2, 8\)"):
        Motion(ARM, ARM_FRAMES[:, :8])


def test_the_papers_split_of_subject_35(recorded_data):
    train, test = cmu35.load_split()
    assert [len(record) for record in train] == [90, 102, 107, 109, 42, 44, 40, 41] and len(test) == 8
    assert {record.y.shape[1] for record in (*train, *test)} == {57}
    # A check of the kinematics: the z-scored control of motion 05, measured elsewhere.
    control = np.concatenate([record.u for record in train])
    assert ((test[0].u - control.mean()) / control.std()).mean() == pytest.approx(0.1759383350291676, abs=1e-9)
    spread = np.concatenate([record.y for record in train]).std(axis=0)
    np.testing.assert_array_equal(cmu35.is_informative(train[0].output_names), spread > 1e-9)
    assert cmu35.is_informative(train[0].output_names).sum() == 53


def test_a_pose_is_the_motion_again(recorded_data, rng):
    motion, record = cmu35.load_motion(5), cmu35.load_series(5)
    order = rng.permutation(len(record.output_names))  # channels may come in any order
    shuffled = cmu35.to_motion(record.y[:, order], [record.output_names[k] for k in order], motion.frames[:, :3])
    np.testing.assert_array_equal(shuffled.frames, motion.frames)
    in_place = cmu35.to_motion(record.y, record.output_names).joints()
    np.testing.assert_allclose(in_place, motion.joints() - motion.joints()[:, :1], rtol=0, atol=1e-9)
    by_speed = cmu35.load_speed_series(5)
    assert by_speed.y.shape == (107, 54) and by_speed.output_names[0] == "root.ty"
    posed = cmu35.to_motion(by_speed.y, by_speed.output_names, motion.root * [1.0, 0.0, 1.0])
    np.testing.assert_allclose(posed.joints(), motion.joints(), rtol=0, atol=1e-9)
    metres = (motion.root[-1, 2] - motion.root[0, 2]) / 0.45 * 0.0254
    np.testing.assert_allclose(by_speed.u, metres / (106 / 30.0), rtol=1e-12)


def test_invalid_poses_and_missing_files_are_refused(recorded_data, tmp_path, monkeypatch):
    record = cmu35.load_series(5)
    names = list(record.output_names)
    for arguments, message in (
        ((record.y[:, 1:], names), r"values has 56 column\(s\), so it needs as many channels, not 57"),
        ((record.y, ["tail.rx", *names[1:]]), r"each once; 'tail.rx' is unknown or repeated"),
        ((record.y, [names[1], *names[1:]]), rf"each once; '{names[1]}' is unknown or repeated"),
        ((record.y, names, np.zeros((106, 3))), r"root must be \[107, 3\], .* of values; received \(106, 3\)"),
    ):
        with pytest.raises(InputError, match=message):
            cmu35.to_motion(*arguments)
    with pytest.raises(InputError, match="subject 35 has no motion 27; there are 1 to 34, without 27"):
        cmu35.load_motion(27)
    monkeypatch.setenv("REVARB_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"REVARB_DATA is set, but there is no .*35\.asf"):
        cmu35.load_skeleton()
    (tmp_path / "35.asf").write_text("another file")
    with pytest.raises(InputError, match="is not the published file: its sha256 differs"):
        cmu35.load_skeleton()


def test_signals_go_from_walking_to_running_and_back(recorded_data):
    gaits = Gaits.load()
    assert len(gaits.walks) == len(gaits.runs) == 5
    assert 1.2 < gaits.walking_speed < 1.3 and 3.2 < gaits.running_speed < 3.5
    found = make_speed_signals(gaits, cmu35.DT)
    assert list(found) == ["step", "ramp", "sine", "stop and go"]
    phases = find_phases(found["step"], gaits)
    expected = [("walk", 0, 600), ("run", 600, 1200), ("walk", 1200, 1800)]
    assert [(phase.name, phase.begin, phase.end) for phase in phases] == expected
    assert np.abs(np.diff(found["ramp"])).max() < 0.01 and np.abs(np.diff(found["sine"])).max() < 0.02
    assert len(make_speed_signals(gaits, cmu35.DT, pace=0.5)["step"]) == 900
    walk = gaits.walks[0]
    motion = Recording(np.full(len(walk), 2.0), walk.y, walk.output_names, cmu35.DT).motion()
    metres = motion.root[:, 2] * motion.skeleton.metres_per_unit
    np.testing.assert_allclose(metres, 2.0 * cmu35.DT * np.arange(len(walk)), rtol=1e-12)


def test_sticks_reach_from_joint_to_joint_and_sides_have_their_colours(recorded_data):
    record = cmu35.load_speed_series(17)
    body = Body.from_channels(record.output_names)
    joints = body.joints(record.y)[3]
    shape = Shape.from_skeleton(body.skeleton, MODEL)
    turns = Rotation.from_quat(shape.cylinders.quaternions(joints), scalar_first=True)
    half, centres = 0.5 * shape.cylinders.sizes[:, 2:] * turns.apply([0, 0, 1.0]), shape.cylinders.centres(joints)
    np.testing.assert_allclose(centres + half, joints[shape.cylinders.ends[:, 0]], atol=1e-6)
    np.testing.assert_allclose(centres - half, joints[shape.cylinders.ends[:, 1]], atol=1e-6)
    (which,) = np.flatnonzero(shape.cylinders.ends[:, 0] == body.skeleton.names.index("lfoot"))
    assert tuple(shape.cylinders.colours[which]) == to_rgb_bytes(tint(MODEL, SHADES["left"]))
    sizes = shape.spheres.sizes
    assert len(sizes) == 2 * len(half) + 1 and sizes.max() == sizes[-1].max() > 0.08  # the last one is the head
