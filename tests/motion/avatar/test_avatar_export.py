"""Export of the played motion to files."""

import numpy as np
import pytest
from PIL import Image

from revarb.data.tables.table import Table
from revarb.errors import InputError
from revarb.motion.acclaim import read_motion, read_skeleton
from revarb.motion.avatar.export import export_motion
from revarb.motion.avatar.live_avatar import LiveAvatar
from support.avatars import gaits, trained
from support.bodies import read_bvh


@pytest.fixture
def model(recorded_data):
    return trained()


@pytest.fixture
def avatar(model):
    return LiveAvatar(model, gaits())


def walk_on(avatar, frames):
    return [avatar.tick() for _ in range(frames)]


def test_the_played_motion_is_exported(avatar, tmp_path):
    avatar.set_speed(2.5)
    walk_on(avatar, 20)
    played = avatar.history()
    motion = played.motion()
    files = {file.suffix: file for file in export_motion(played, tmp_path / "new" / "folder", "avatar")}
    assert set(files) == {".bvh", ".amc", ".asf", ".csv", ".gif"} and all(file.is_file() for file in files.values())
    _, dt, rows = read_bvh(files[".bvh"])
    assert dt == pytest.approx(avatar.dt) and len(rows) == 21
    again = read_motion(files[".amc"], read_skeleton(files[".asf"]))
    np.testing.assert_array_equal(again.frames, motion.frames)
    np.testing.assert_allclose(again.joints(), motion.joints())
    table = Table(files[".csv"])
    assert table.names == ("time", "speed", *motion.skeleton.channels)
    np.testing.assert_array_equal(table.columns(["speed"])[:, 0], played.speeds)
    with Image.open(files[".gif"]) as film:
        assert film.n_frames == 11


def test_a_folder_that_cannot_be_made_is_one_line(avatar, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot create the folder"):
        export_motion(avatar.history(), tmp_path / "file" / "folder", "avatar")
