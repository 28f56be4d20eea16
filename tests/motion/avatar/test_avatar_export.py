"""What was played, as files."""

import numpy as np
import pytest
from PIL import Image
from revarb.motion.avatar.player import Player

from revarb.data.tables.table import Table
from revarb.errors import InputError
from revarb.motion.acclaim import read_motion, read_skeleton
from revarb.motion.avatar.export import export
from support.avatars import gaits, trained
from support.bodies import read_bvh


@pytest.fixture
def model(recorded_data):
    return trained()


@pytest.fixture
def player(model):
    return Player(model, gaits())


def walk_on(player, frames):
    return [player.tick() for _ in range(frames)]


# --- files -----------------------------------------------------------------------------------------------------------
def test_what_was_played_is_exported(player, tmp_path):
    player.steer(2.5)
    walk_on(player, 20)
    played = player.history()
    motion = played.motion()
    files = {file.suffix: file for file in export(played, tmp_path / "new" / "folder", "avatar")}
    assert set(files) == {".bvh", ".amc", ".asf", ".csv", ".gif"} and all(file.is_file() for file in files.values())
    _, dt, rows = read_bvh(files[".bvh"])
    assert dt == pytest.approx(player.dt) and len(rows) == 21
    again = read_motion(files[".amc"], read_skeleton(files[".asf"]))
    np.testing.assert_array_equal(again.frames, motion.frames)
    np.testing.assert_allclose(again.joints(), motion.joints())
    table = Table(files[".csv"])
    assert table.names == ("time", "speed", *motion.skeleton.channels)
    np.testing.assert_array_equal(table.columns(["speed"])[:, 0], played.speeds)
    with Image.open(files[".gif"]) as film:
        assert film.n_frames == 11


def test_a_folder_that_cannot_be_is_one_line(player, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot create the folder"):
        export(player.history(), tmp_path / "file" / "folder", "avatar")
