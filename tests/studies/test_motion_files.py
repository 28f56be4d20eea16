"""Acclaim files (ASF, AMC), and BVH files, read by an independent reader (support/bodies.py)."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from revarb import InputError
from studies.paper.motion.kinematics import Bone, Motion, Skeleton
from studies.paper.motion.motion_files import read_motion, read_skeleton, write_bvh, write_motion, write_skeleton
from support.bodies import ARM, ARM_FRAMES, DT, ROOT, read_bvh

TREE = Skeleton(
    (
        ROOT,
        # A branch that comes later in the file than its sibling's children: BVH has another order.
        Bone("hip", 0, (0.6, -0.8, 0.0), 2.5, (10.0, -70.0, 130.0), ()),
        Bone("spine", 0, (0.0, 1.0, 0.1), 4.0, (0.0, 0.0, 0.0), ("rx", "ry", "rz")),
        Bone("leg", 1, (0.1, -0.9, 0.3), 7.0, (20.0, 30.0, -40.0), ("rz", "rx")),
        Bone("bud", 2, (0.0, 1.0, 0.0), 0.0, (5.0, 6.0, 7.0), ("ry",)),
        Bone("arm", 2, (1.0, 0.0, 0.0), 3.0, (0.0, 90.0, 90.0), ("rx", "ry", "rz")),
        Bone("tip", 4, (0.0, 0.0, 1.0), 1.0, (0.0, 0.0, 45.0), ()),
    ),
    0.45,
)


@pytest.fixture
def files(tmp_path):
    return write_skeleton(tmp_path / "arm.asf", ARM), write_motion(tmp_path / "arm.amc", Motion(ARM, ARM_FRAMES))


def test_read_write_read_gives_the_same_numbers(files):
    assert read_skeleton(files[0]) == ARM
    np.testing.assert_array_equal(read_motion(files[1], ARM).frames, ARM_FRAMES)
    lines = files[1].read_text().splitlines()  # bones of a frame may come in any order
    files[1].write_text("\n".join([*lines[:2], "1", *reversed(lines[3:6]), *lines[6:]]))
    np.testing.assert_array_equal(read_motion(files[1], ARM).frames, ARM_FRAMES)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (1, "root 1.0 2.0", "root 1.0 two", r"arm\.amc, line 4: expected 6 finite number\(s\) after 'root', received"),
        (1, "upper 90.0", "middle 90.0", "line 5: expected the numbers of a bone .* received 'middle 90.0'"),
        (1, "upper 90.0\n", "", "lacks a bone in frame 1"),
        (1, "upper 90.0", "root 1 2 3 4 5 6", "line 5: .* each bone once in a frame"),
        (1, "\n2\n", "\n3\n", "expected frame 2, received '3'"),
        (1, ":DEGREES", ":RADIANS", "line 2: expected angles in degrees"),
        (0, "length 0.45", "length -1", "a positive 'length' in :units"),
        (0, "order TX TY", "order TY TX", "line 7: expected 'order TX TY TZ RX RY RZ'"),
        (0, "position 0 0 0", "position 0 1 0", "expected 'position 0 0 0'"),
        (0, "90.0 XYZ", "90.0 ZYX", "expected three angles and 'XYZ'"),
        (0, "    length 2.0\n", "", r"expected lines \['length'\] before the end of the bone"),
        (0, "dof rx ry", "dof rx tx", "expected some of rx, ry, rz"),
        (0, "name lower", "name upper", r"expected a name that no other bone has \('upper' is taken\)"),
        (0, "    upper lower\n", "", "the bone 'lower' needs a parent that is before it"),
        (0, "root upper", "root elbow", "expected names of bones"),
        (0, ":hierarchy", ":tree", "has no section ':hierarchy'"),
    ],
)
def test_errors_name_the_line(files, file, old, new, message):
    assert old in files[file].read_text()
    files[file].write_text(files[file].read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        read_motion(files[1], read_skeleton(files[0]))


@pytest.mark.parametrize(
    ("content", "message"), [(None, "No such file"), (b"\xff\xfe\x00", "not ASCII text"), (b"# nothing\n", "no frames")]
)
def test_missing_and_empty_files(tmp_path, content, message):
    if content is not None:
        (tmp_path / "file.amc").write_bytes(content)
    with pytest.raises(InputError, match=rf"file\.amc.*{message}"):
        read_motion(tmp_path / "file.amc", ARM)


def about(axis, degrees):
    return Rotation.from_euler(axis, degrees, degrees=True).as_matrix()


def places(joints, row):
    """Positions of the joints in a frame."""
    turns, found, column = [], [], 0
    for _, parent, offset, channels in joints:
        turn = np.eye(3) if parent is None else turns[parent]
        place = offset if parent is None else found[parent] + turn @ offset
        for channel in channels:
            if channel.endswith("position"):
                place = place + row[column] * np.eye(3)["XYZ".index(channel[0])]
            else:
                turn = turn @ about(channel[0], row[column])
            column += 1
        turns.append(turn)
        found.append(place)
    assert column == len(row)
    return np.array(found)


def assert_the_same_motion(path, motion):
    """A bone ends where its children are, or its End Site."""
    joints, _, rows = read_bvh(path)
    names = [name for name, *_ in joints]
    bones = [motion.skeleton.names.index(names[parent or 0]) for _, parent, *_ in joints]
    for row, truth in zip(rows, 100 * motion.skeleton.metres_per_unit * motion.joints(), strict=True):
        np.testing.assert_allclose(places(joints, row)[1:], truth[bones[1:]], rtol=0, atol=1e-4)


def test_bvh_has_the_joints_of_a_tree_with_odd_axes(tmp_path, rng):
    motion = Motion(TREE, rng.uniform(-180.0, 180.0, (40, len(TREE.channels))))
    path = write_bvh(tmp_path / "tree.bvh", motion, 1 / 30)
    assert_the_same_motion(path, motion)
    joints, dt, _ = read_bvh(path)
    names = [name for name, *_ in joints]
    assert names == ["root", "hip", "leg", "end of leg", "spine", "bud", "tip", "end of tip", "arm", "end of arm"]
    assert dt == 1 / 30 and path.read_bytes() == write_bvh(tmp_path / "again.bvh", motion, 1 / 30).read_bytes()
    assert "nan" not in path.read_text() and " -0.000000" not in path.read_text()


@pytest.mark.parametrize("tilt", [90.0, -90.0, 90.0 - 1e-9, 90.0 + 1e-7, 89.9999])
def test_bvh_survives_a_gimbal_lock(tmp_path, rng, tilt):
    """At gimbal lock the angles about z and y are not unique; the joint positions must be right."""
    axis = (20.0, 30.0, -40.0)
    body = Skeleton((ROOT, Bone("arm", 0, (0.6, 0.0, 0.8), 3.0, axis, ("rx", "ry", "rz"))), 0.45)
    frame = about("Z", axis[2]) @ about("Y", axis[1]) @ about("X", axis[0])
    turns = [about("Z", z) @ about("X", tilt) @ about("Y", y) for z, y in rng.uniform(-180.0, 180.0, (50, 2))]
    inside = Rotation.from_matrix([frame.T @ turn @ frame for turn in turns]).as_euler("xyz", degrees=True)
    motion = Motion(body, np.concatenate([np.zeros((50, 6)), inside], axis=1))
    assert_the_same_motion(write_bvh(tmp_path / "locked.bvh", motion, DT), motion)


def test_angles_of_bvh_do_not_jump(tmp_path):
    """Two full turns: the angles are unwrapped, so that interpolation between frames does not spin back."""
    frames = np.zeros((73, 9))
    frames[:, 4] = 10.0 * np.arange(73)
    _, _, rows = read_bvh(write_bvh(tmp_path / "spin.bvh", Motion(ARM, frames), DT))
    np.testing.assert_allclose(rows[:, 5], frames[:, 4], atol=1e-6)


def test_a_skeleton_may_be_a_root_alone(tmp_path):
    motion = Motion(Skeleton((ROOT,), 1.0), ARM_FRAMES[:, :6])
    joints, _, rows = read_bvh(write_bvh(tmp_path / "root.bvh", motion, DT))
    assert [name for name, *_ in joints] == ["root", "end of root"]
    np.testing.assert_allclose(places(joints, rows[1])[0], 2.54 * ARM_FRAMES[1, :3], atol=1e-6)
