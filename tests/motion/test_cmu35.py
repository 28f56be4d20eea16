"""Subject 35 of the CMU motion capture data."""

import numpy as np
import pytest

from revarb import datasets
from revarb.errors import InputError
from revarb.motion import cmu35
from revarb.motion.acclaim import read_motion, read_skeleton, write_motion, write_skeleton


def test_every_bone_keeps_its_length(recorded_data):
    for number in (5, 21):
        motion = cmu35.load_motion(number)
        joints = motion.joints()
        for position, bone in enumerate(motion.skeleton.bones[1:], start=1):
            lengths = np.linalg.norm(joints[:, position] - joints[:, bone.parent], axis=1)
            stretch = np.linalg.norm(bone.direction)  # the file's directions are rounded
            np.testing.assert_allclose(lengths, bone.length * stretch, rtol=1e-12)


def test_the_recorded_files_survive_a_round_trip(recorded_data, tmp_path):
    skeleton, motion = cmu35.load_skeleton(), cmu35.load_motion(17)
    assert read_skeleton(write_skeleton(tmp_path / "s.asf", skeleton)) == skeleton
    np.testing.assert_array_equal(read_motion(write_motion(tmp_path / "m.amc", motion), skeleton).frames, motion.frames)


def test_the_papers_split_of_subject_35(recorded_data):
    split = datasets.load("cmu35")
    assert [len(record) for record in split.train] == [90, 102, 107, 109, 42, 44, 40, 41]
    assert len(split.test) == 8 and split.lags == 20
    assert {record.y.shape[1] for record in (*split.train, *split.test)} == {57}
    # A check of the kinematics: the z-scored control of motion 05, measured elsewhere.
    control = np.concatenate([record.u for record in split.train])
    scored = (split.test[0].u - control.mean()) / control.std()
    assert scored.mean() == pytest.approx(0.1759383350291676, abs=1e-9)


def test_the_channels_that_are_rounding_noise_are_named(recorded_data):
    split = datasets.load("cmu35")
    spread = np.concatenate([record.y for record in split.train]).std(axis=0)
    np.testing.assert_array_equal(cmu35.is_informative(split.train[0].output_names), spread > 1e-9)
    assert cmu35.is_informative(split.train[0].output_names).sum() == 53


@pytest.fixture
def walk(recorded_data):
    return cmu35.load_motion(5), cmu35.load_series(5)


def test_a_pose_is_the_motion_again(walk):
    motion, record = walk
    with_root = cmu35.to_motion(record.y, record.output_names, motion.frames[:, :3])
    np.testing.assert_allclose(with_root.joints(), motion.joints(), rtol=0, atol=1e-9)
    in_place = cmu35.to_motion(record.y, record.output_names).joints()
    np.testing.assert_array_equal(in_place[:, 0], 0.0)
    np.testing.assert_allclose(in_place, motion.joints() - motion.joints()[:, :1], rtol=0, atol=1e-9)


def test_a_controlled_motion_has_all_but_its_path(walk):
    motion, _ = walk
    record = cmu35.load_speed_series(5)
    assert record.y.shape == (107, 54) and record.output_names[0] == "root.ty"
    posed = cmu35.to_motion(record.y, record.output_names, motion.root * [1.0, 0.0, 1.0])
    np.testing.assert_allclose(posed.joints(), motion.joints(), rtol=0, atol=1e-9)
    metres = (motion.root[-1, 2] - motion.root[0, 2]) / 0.45 * 0.0254
    np.testing.assert_allclose(record.u, metres / (106 / 30.0), rtol=1e-12)


def test_runs_are_faster_than_walks(recorded_data):
    speeds = {number: float(cmu35.load_speed_series(number).u[0, 0]) for number in cmu35.AVATAR_MOTIONS}
    runs = [speed for number, speed in speeds.items() if number in cmu35.RUNS]
    walks = [speed for number, speed in speeds.items() if number not in cmu35.RUNS]
    assert len(runs) == len(walks) == 5
    assert 1.0 < min(walks) < max(walks) < 1.6 and 2.8 < min(runs) < max(runs) < 4.0


def test_channels_of_a_pose_may_come_in_any_order(walk, rng):
    motion, record = walk
    order = rng.permutation(len(record.output_names))
    shuffled = cmu35.to_motion(record.y[:, order], [record.output_names[k] for k in order], motion.frames[:, :3])
    np.testing.assert_array_equal(shuffled.frames, motion.frames)


def test_the_fingers_never_move(recorded_data):
    for number in (*cmu35.TRAIN, *cmu35.TEST):
        motion = cmu35.load_motion(number)
        for name, angle in cmu35.FINGERS.items():
            np.testing.assert_array_equal(motion.frames[:, motion.skeleton.channels.index(name)], angle)


def test_invalid_poses_are_refused(walk):
    _, record = walk
    names = list(record.output_names)
    with pytest.raises(InputError, match=r"values has 56 column\(s\), so it needs as many channels, not 57"):
        cmu35.to_motion(record.y[:, 1:], names)
    with pytest.raises(InputError, match=r"channels lacks 'root\.rx'; a pose needs all"):
        cmu35.to_motion(record.y[:, 1:], names[1:])
    for wrong in ("tail.rx", "rfingers.rx", names[1]):
        with pytest.raises(InputError, match=rf"each once; '{wrong}' is unknown or repeated"):
            cmu35.to_motion(record.y, [wrong, *names[1:]])
    with pytest.raises(InputError, match=r"root must be \[107, 3\], one row per row of values; received \(106, 3\)"):
        cmu35.to_motion(record.y, names, np.zeros((106, 3)))
    with pytest.raises(InputError, match="values has 1 value"):
        cmu35.to_motion(np.where(np.arange(record.y.size).reshape(record.y.shape) == 0, np.nan, record.y), names)


def test_a_missing_motion(recorded_data):
    with pytest.raises(InputError, match="subject 35 has no motion 27; there are 1 to 34, without 27"):
        cmu35.load_motion(27)
