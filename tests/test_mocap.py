import numpy as np
import pytest

from revarb import datasets
from revarb.errors import InputError
from revarb.motion import cmu35
from revarb.motion.acclaim import read_motion, read_skeleton, write_motion, write_skeleton
from revarb.motion.kinematics import ROOT_CHANNELS, Bone, Motion, Skeleton

ROOT = Bone("root", None, (0.0, 0.0, 0.0), 0.0, (0.0, 0.0, 0.0), ROOT_CHANNELS)
ARM = Skeleton(
    (
        ROOT,
        Bone("upper", 0, (1.0, 0.0, 0.0), 2.0, (0.0, 0.0, 0.0), ("rz",)),
        Bone("lower", 1, (1.0, 0.0, 0.0), 1.0, (0.0, 0.0, 90.0), ("rx", "ry")),
    ),
    0.45,
)
FRAMES = np.array([[1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 90.0, 0.0, 0.0], [0.1, 1 / 3, 1e-17, 5.0, 6.0, 7.0, 8.0, 9.0, -1.5]])


@pytest.fixture
def files(tmp_path):
    return write_skeleton(tmp_path / "arm.asf", ARM), write_motion(tmp_path / "arm.amc", Motion(ARM, FRAMES))


def test_an_arm_bends_where_it_should():
    joints = Motion(ARM, FRAMES[:1]).joints()[0]
    np.testing.assert_allclose(joints, [[1, 2, 3], [1, 4, 3], [1, 5, 3]], atol=1e-12)
    # The lower arm's own frame is turned by 90° about z, so its rx turns about the skeleton's y.
    bent = FRAMES[:1].copy()
    bent[0, 6:8] = 0.0, 90.0
    np.testing.assert_allclose(Motion(ARM, bent).joints()[0, 2], [3, 2, 2], atol=1e-12)
    turned = FRAMES[:1].copy()
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


def test_read_write_read_gives_the_same_numbers(files):
    skeleton = read_skeleton(files[0])
    assert skeleton == ARM
    np.testing.assert_array_equal(read_motion(files[1], skeleton).frames, FRAMES)


def test_bones_of_a_frame_may_come_in_any_order(files):
    lines = files[1].read_text().splitlines()
    files[1].write_text("\n".join([*lines[:2], "1", *reversed(lines[3:6]), *lines[6:]]))
    np.testing.assert_array_equal(read_motion(files[1], ARM).frames, FRAMES)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("root 1.0 2.0", "root 1.0 two", r"arm\.amc, line 4: expected 6 finite number\(s\) after 'root', received"),
        ("upper 90.0", "upper", r"line 5: expected 1 finite number\(s\) after 'upper'"),
        ("upper 90.0", "upper nan", r"line 5: expected 1 finite"),
        ("upper 90.0", "upper 1 2", r"line 5: expected 1 finite"),
        ("upper 90.0", "middle 90.0", "line 5: expected a bone of the skeleton, received 'middle 90.0'"),
        ("upper 90.0\n", "", "line 6: expected the bone 'upper' before the end of frame 1, received '2'|line 5"),
        ("upper 90.0", "root 1 2 3 4 5 6", r"line 5: expected each bone once \('root' comes again in frame 1\)"),
        ("\n2\n", "\n3\n", "expected frame 2, received '3'"),
        (":DEGREES", ":RADIANS", "line 2: expected angles in degrees"),
        ("\n1\n", "\n", "line 3: expected the number of a frame first"),
    ],
)
def test_what_is_wrong_with_a_motion_is_said_with_its_line(files, old, new, message):
    files[1].write_text(files[1].read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        read_motion(files[1], ARM)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("angle deg", "angle rad", "line 5: expected angles in degrees"),
        ("length 0.45", "length -1", "a positive 'length' in :units"),
        ("order TX TY", "order TY TX", "line 7: expected 'order TX TY TZ RX RY RZ'"),
        ("position 0 0 0", "position 0 1 0", "expected 'position 0 0 0'"),
        ("90.0 XYZ", "90.0 ZYX", "expected three angles and 'XYZ'"),
        ("direction 1.0 0.0 0.0", "direction 1.0 0.0", r"expected 3 finite number\(s\) after 'direction'"),
        ("    length 2.0\n", "", "expected a line 'length' before the end of the bone"),
        ("dof rx ry", "dof rx tx", "expected some of rx, ry, rz, each once"),
        ("name lower", "name upper", "there is a bone 'upper' already"),
        ("    upper lower\n", "", "the bone 'lower' has no parent in :hierarchy"),
        ("root upper", "root elbow", r"expected names of bones \('elbow' is none\)"),
        ("upper lower", "upper lower upper", r"one parent for every bone \('upper' has one\)"),
        (":hierarchy", ":tree", "has no section ':hierarchy'"),
        (":version 1.10", "hello", "expected a section such as ':units' first"),
    ],
)
def test_what_is_wrong_with_a_skeleton_is_said_with_its_line(files, old, new, message):
    assert old in files[0].read_text()
    files[0].write_text(files[0].read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        read_skeleton(files[0])


def test_missing_and_binary_files(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*none\.asf: No such file"):
        read_skeleton(tmp_path / "none.asf")
    (tmp_path / "binary.amc").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not a text file"):
        read_motion(tmp_path / "binary.amc", ARM)
    (tmp_path / "empty.amc").write_text("# nothing\n")
    with pytest.raises(InputError, match="has no frames"):
        read_motion(tmp_path / "empty.amc", ARM)


def test_frames_must_fit_the_skeleton():
    with pytest.raises(InputError, match=r"frames must be \[T, 9\] for this skeleton, received \(2, 8\)"):
        Motion(ARM, FRAMES[:, :8])


def test_every_bone_keeps_its_length(recorded_data):
    for number in (5, 21):
        motion = cmu35.motion(number)
        joints = motion.joints()
        for position, bone in enumerate(motion.skeleton.bones[1:], start=1):
            lengths = np.linalg.norm(joints[:, position] - joints[:, bone.parent], axis=1)
            stretch = np.linalg.norm(bone.direction)  # the file's directions are rounded
            np.testing.assert_allclose(lengths, bone.length * stretch, rtol=1e-12)


def test_the_recorded_files_survive_a_round_trip(recorded_data, tmp_path):
    skeleton, motion = cmu35.skeleton(), cmu35.motion(17)
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
    np.testing.assert_array_equal(cmu35.honest(split.train[0].output_names), spread > 1e-9)
    assert cmu35.honest(split.train[0].output_names).sum() == 53


@pytest.fixture
def walk(recorded_data):
    return cmu35.motion(5), cmu35.series(5)


def test_a_pose_is_the_motion_again(walk):
    motion, record = walk
    with_root = cmu35.pose(record.y, record.output_names, motion.frames[:, :3])
    np.testing.assert_allclose(with_root.joints(), motion.joints(), rtol=0, atol=1e-9)
    in_place = cmu35.pose(record.y, record.output_names).joints()
    np.testing.assert_array_equal(in_place[:, 0], 0.0)
    np.testing.assert_allclose(in_place, motion.joints() - motion.joints()[:, :1], rtol=0, atol=1e-9)


def test_a_controlled_motion_lacks_only_where_it_goes(walk):
    motion, _ = walk
    record = cmu35.controlled(5)
    assert record.y.shape == (107, 54) and record.output_names[0] == "root.ty"
    posed = cmu35.pose(record.y, record.output_names, motion.root * [1.0, 0.0, 1.0])
    np.testing.assert_allclose(posed.joints(), motion.joints(), rtol=0, atol=1e-9)
    metres = (motion.root[-1, 2] - motion.root[0, 2]) / 0.45 * 0.0254
    np.testing.assert_allclose(record.u, metres / (106 / 30.0), rtol=1e-12)


def test_who_runs_is_faster(recorded_data):
    speeds = {number: float(cmu35.controlled(number).u[0, 0]) for number in cmu35.AVATAR}
    runs = [speed for number, speed in speeds.items() if number in cmu35.RUNS]
    walks = [speed for number, speed in speeds.items() if number not in cmu35.RUNS]
    assert len(runs) == len(walks) == 5
    assert 1.0 < min(walks) < max(walks) < 1.6 and 2.8 < min(runs) < max(runs) < 4.0


def test_channels_of_a_pose_may_come_in_any_order(walk, rng):
    motion, record = walk
    order = rng.permutation(len(record.output_names))
    shuffled = cmu35.pose(record.y[:, order], [record.output_names[k] for k in order], motion.frames[:, :3])
    np.testing.assert_array_equal(shuffled.frames, motion.frames)


def test_the_fingers_never_move(recorded_data):
    for number in (*cmu35.TRAIN, *cmu35.TEST):
        motion = cmu35.motion(number)
        for name, angle in cmu35.FINGERS.items():
            np.testing.assert_array_equal(motion.frames[:, motion.skeleton.channels.index(name)], angle)


def test_what_is_no_pose_is_refused(walk):
    _, record = walk
    names = list(record.output_names)
    with pytest.raises(InputError, match=r"values has 56 column\(s\), so it needs as many channels, not 57"):
        cmu35.pose(record.y[:, 1:], names)
    with pytest.raises(InputError, match=r"channels lacks 'root\.rx'; a pose needs all"):
        cmu35.pose(record.y[:, 1:], names[1:])
    for wrong in ("tail.rx", "rfingers.rx", names[1]):
        with pytest.raises(InputError, match=rf"each once; '{wrong}' is none of them or doubled"):
            cmu35.pose(record.y, [wrong, *names[1:]])
    with pytest.raises(InputError, match=r"root must be \[107, 3\], a row per row of values; received \(106, 3\)"):
        cmu35.pose(record.y, names, np.zeros((106, 3)))
    with pytest.raises(InputError, match="values has 1 value"):
        cmu35.pose(np.where(np.arange(record.y.size).reshape(record.y.shape) == 0, np.nan, record.y), names)


def test_a_motion_that_is_not_there(recorded_data):
    with pytest.raises(InputError, match="subject 35 has no motion 27; there are 1 to 34, without 27"):
        cmu35.motion(27)
