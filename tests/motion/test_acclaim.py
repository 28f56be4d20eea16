"""Acclaim files (ASF, AMC)."""

import numpy as np
import pytest

from revarb.errors import InputError
from revarb.motion.acclaim import read_motion, read_skeleton, write_motion, write_skeleton
from revarb.motion.kinematics import Motion
from support.bodies import ARM, ARM_FRAMES


@pytest.fixture
def files(tmp_path):
    return write_skeleton(tmp_path / "arm.asf", ARM), write_motion(tmp_path / "arm.amc", Motion(ARM, ARM_FRAMES))


def test_read_write_read_gives_the_same_numbers(files):
    skeleton = read_skeleton(files[0])
    assert skeleton == ARM
    np.testing.assert_array_equal(read_motion(files[1], skeleton).frames, ARM_FRAMES)


def test_bones_of_a_frame_may_come_in_any_order(files):
    lines = files[1].read_text().splitlines()
    files[1].write_text("\n".join([*lines[:2], "1", *reversed(lines[3:6]), *lines[6:]]))
    np.testing.assert_array_equal(read_motion(files[1], ARM).frames, ARM_FRAMES)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("root 1.0 2.0", "root 1.0 two", r"arm\.amc, line 4: expected 6 finite number\(s\) after 'root', received"),
        ("upper 90.0", "upper", r"line 5: expected 1 finite number\(s\) after 'upper'"),
        ("upper 90.0", "upper nan", r"line 5: expected 1 finite"),
        ("upper 90.0", "upper 1 2", r"line 5: expected 1 finite"),
        ("upper 90.0", "middle 90.0", "line 5: expected a bone of the skeleton, received 'middle 90.0'"),
        ("upper 90.0\n", "", "line 6: expected the bone 'upper' before the end of frame 1, received '2'|line 5"),
        ("upper 90.0", "root 1 2 3 4 5 6", r"line 5: expected each bone once \('root' is repeated in frame 1\)"),
        ("\n2\n", "\n3\n", "expected frame 2, received '3'"),
        (":DEGREES", ":RADIANS", "line 2: expected angles in degrees"),
        ("\n1\n", "\n", "line 3: expected the number of a frame first"),
    ],
)
def test_errors_of_a_motion_name_the_line(files, old, new, message):
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
        ("name lower", "name upper", r"expected a name that no other bone has \('upper' is taken\)"),
        ("    upper lower\n", "", "the bone 'lower' has no parent in :hierarchy"),
        ("root upper", "root elbow", r"expected names of bones \('elbow' is not one\)"),
        ("upper lower", "upper lower upper", r"one parent per bone \('upper' has one already\)"),
        (":hierarchy", ":tree", "has no section ':hierarchy'"),
        (":version 1.10", "hello", "expected a section such as ':units' first"),
    ],
)
def test_errors_of_a_skeleton_name_the_line(files, old, new, message):
    assert old in files[0].read_text()
    files[0].write_text(files[0].read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        read_skeleton(files[0])


def test_missing_and_binary_files(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*none\.asf: No such file"):
        read_skeleton(tmp_path / "none.asf")
    (tmp_path / "binary.amc").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not an ASCII text file"):
        read_motion(tmp_path / "binary.amc", ARM)
    (tmp_path / "empty.amc").write_text("# nothing\n")
    with pytest.raises(InputError, match="has no frames"):
        read_motion(tmp_path / "empty.amc", ARM)
