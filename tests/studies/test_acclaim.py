"""Acclaim files (ASF, AMC)."""

import numpy as np
import pytest

from revarb import InputError
from studies.paper.motion.kinematics import Motion
from studies.paper.motion.motion_files import read_motion, read_skeleton, write_motion, write_skeleton
from support.bodies import ARM, ARM_FRAMES


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
        (1, "upper 90.0", "upper nan", r"line 5: expected 1 finite number\(s\) after 'upper'"),
        (1, "upper 90.0", "upper 1 2", "line 5: expected the numbers of a bone"),
        (1, "upper 90.0", "middle 90.0", "line 5: expected the numbers of a bone .* received 'middle 90.0'"),
        (1, "upper 90.0\n", "", "lacks a bone in frame 1"),
        (1, "upper 90.0", "root 1 2 3 4 5 6", "line 5: .* each bone once in a frame"),
        (1, "\n2\n", "\n3\n", "expected frame 2, received '3'"),
        (1, ":DEGREES", ":RADIANS", "line 2: expected angles in degrees"),
        (1, "\n1\n", "\n", "line 3: expected the numbers of a bone"),
        (0, "angle deg", "angle rad", "line 5: expected angles in degrees"),
        (0, "length 0.45", "length -1", "a positive 'length' in :units"),
        (0, "order TX TY", "order TY TX", "line 7: expected 'order TX TY TZ RX RY RZ'"),
        (0, "position 0 0 0", "position 0 1 0", "expected 'position 0 0 0'"),
        (0, "90.0 XYZ", "90.0 ZYX", "expected three angles and 'XYZ'"),
        (0, "direction 1.0 0.0 0.0", "direction 1.0 0.0", r"expected 3 finite number\(s\) after 'direction'"),
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
