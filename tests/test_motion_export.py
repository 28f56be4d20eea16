"""Motions that leave the house: BVH against a reader of its own, films, and strips in the colours of their phases."""

import io
from itertools import pairwise

import matplotlib.image
import numpy as np
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation

from revarb.errors import InputError
from revarb.motion import cmu35
from revarb.motion.biovision import write_bvh
from revarb.motion.film import MOST_COLOURS, film
from revarb.motion.kinematics import Bone, Motion, Skeleton
from revarb.motion.strip import shades, strip_figure
from revarb.runtime.figure_style import MEASURED, MODEL
from test_mocap import ARM, FRAMES, ROOT
from test_motion_page import BODY, DT, stride

WALK, RUN = "#1f5fa8", "#c1272d"
TREE = Skeleton(
    (
        ROOT,
        # A branch that comes later in the file than its sibling's children: the order of BVH is another.
        Bone("hip", 0, (0.6, -0.8, 0.0), 2.5, (10.0, -70.0, 130.0), ()),
        Bone("spine", 0, (0.0, 1.0, 0.1), 4.0, (0.0, 0.0, 0.0), ("rx", "ry", "rz")),
        Bone("leg", 1, (0.1, -0.9, 0.3), 7.0, (20.0, 30.0, -40.0), ("rz", "rx")),
        Bone("bud", 2, (0.0, 1.0, 0.0), 0.0, (5.0, 6.0, 7.0), ("ry",)),
        Bone("arm", 2, (1.0, 0.0, 0.0), 3.0, (0.0, 90.0, 90.0), ("rx", "ry", "rz")),
        Bone("tip", 4, (0.0, 0.0, 1.0), 1.0, (0.0, 0.0, 45.0), ()),
    ),
    0.45,
)


def about(axis, degrees):
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return {
        "X": np.array([[1, 0, 0], [0, c, -s], [0, s, c]]),
        "Y": np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]),
        "Z": np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]),
    }[axis]


def read_bvh(path):
    """Joints in the order of the file (name, parent, offset, channels; End Sites have none), the frame time, rows."""
    words = path.read_text().split()
    joints, open_joints, place = [], [], 1
    assert words[0] == "HIERARCHY"
    while words[place] != "MOTION":
        if words[place] in ("ROOT", "JOINT", "End"):
            name = words[place + 1] if words[place] != "End" else f"end of {joints[open_joints[-1]][0]}"
            assert words[place + 2 : place + 4] == ["{", "OFFSET"]
            offset = np.array([float(word) for word in words[place + 4 : place + 7]])
            place += 7
            channels = []
            if words[place] == "CHANNELS":
                count = int(words[place + 1])
                channels = words[place + 2 : place + 2 + count]
                place += 2 + count
            joints.append((name, open_joints[-1] if open_joints else None, offset, channels))
            open_joints.append(len(joints) - 1)
        else:
            assert words[place] == "}"
            open_joints.pop()
            place += 1
    assert not open_joints and words[place + 1] == "Frames:" and words[place + 3 : place + 5] == ["Frame", "Time:"]
    rows = np.array([float(word) for word in words[place + 6 :]]).reshape(int(words[place + 2]), -1)
    return joints, float(words[place + 5]), rows


def places(joints, row):
    """Where the joints are in a frame: channel after channel, joint after joint."""
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


def ends_of_bones(joints, row, skeleton):
    """A bone ends where its children stand, or at its End Site."""
    found, names = places(joints, row), [name for name, *_ in joints]
    ends = [found[0]]
    for bone in skeleton.names[1:]:
        standing = [found[k] for k, (_, parent, *_) in enumerate(joints) if parent == names.index(bone)]
        assert all((each == standing[0]).all() for each in standing)
        ends.append(standing[0])
    return ends


def assert_the_same_motion(path, motion):
    joints, _, rows = read_bvh(path)
    truth = 100 * motion.skeleton.unit * motion.joints()
    assert len(rows) == len(truth)
    for row, there in zip(rows, truth, strict=True):
        np.testing.assert_allclose(ends_of_bones(joints, row, motion.skeleton), there, rtol=0, atol=1e-4)


def test_bvh_has_the_joints_of_a_tree_with_odd_axes(tmp_path, rng):
    frames = rng.uniform(-180.0, 180.0, (40, len(TREE.channels)))
    motion = Motion(TREE, frames)
    path = write_bvh(tmp_path / "tree.bvh", motion, 1 / 30)
    assert_the_same_motion(path, motion)
    joints, dt, _ = read_bvh(path)
    names = [name for name, *_ in joints]
    assert names == ["root", "hip", "leg", "end of leg", "spine", "bud", "tip", "end of tip", "arm", "end of arm"]
    assert dt == 1 / 30
    assert path.read_bytes() == write_bvh(tmp_path / "again.bvh", motion, 1 / 30).read_bytes()
    assert "nan" not in path.read_text() and " -0.000000" not in path.read_text()


@pytest.mark.parametrize("tilt", [90.0, -90.0, 90.0 - 1e-9, 90.0 + 1e-7, 89.9999])
def test_bvh_survives_a_gimbal_lock(tmp_path, rng, tilt):
    """Where the turns about z and y are one: whatever is written, together they must be right."""
    axis = (20.0, 30.0, -40.0)
    body = Skeleton((ROOT, Bone("arm", 0, (0.6, 0.0, 0.8), 3.0, axis, ("rx", "ry", "rz"))), 0.45)
    frame = about("Z", axis[2]) @ about("Y", axis[1]) @ about("X", axis[0])
    turns = [about("Z", z) @ about("X", tilt) @ about("Y", y) for z, y in rng.uniform(-180.0, 180.0, (50, 2))]
    inside = Rotation.from_matrix([frame.T @ turn @ frame for turn in turns]).as_euler("xyz", degrees=True)
    motion = Motion(body, np.concatenate([np.zeros((50, 6)), inside], axis=1))
    assert_the_same_motion(write_bvh(tmp_path / "locked.bvh", motion, DT), motion)


def test_angles_of_bvh_do_not_jump(tmp_path):
    """Twice around: no program that draws straight lines between frames may see it spin back."""
    frames = np.zeros((73, 9))
    frames[:, 4] = 10.0 * np.arange(73)
    _, _, rows = read_bvh(write_bvh(tmp_path / "spin.bvh", Motion(ARM, frames), DT))
    np.testing.assert_allclose(rows[:, 5], frames[:, 4], atol=1e-6)


@pytest.mark.parametrize("number", [5, 21])
def test_bvh_has_the_joints_of_a_recorded_motion(recorded_data, tmp_path, number):
    motion = cmu35.motion(number)
    assert_the_same_motion(write_bvh(tmp_path / "motion.bvh", motion, cmu35.DT), motion)


def test_a_root_alone_is_a_motion_too(tmp_path):
    motion = Motion(Skeleton((ROOT,), 1.0), FRAMES[:, :6])
    joints, _, rows = read_bvh(write_bvh(tmp_path / "root.bvh", motion, DT))
    assert [name for name, *_ in joints] == ["root", "end of root"]
    np.testing.assert_allclose(places(joints, rows[1])[0], 2.54 * FRAMES[1, :3], atol=1e-6)


def test_what_cannot_be_a_bvh_is_refused_and_leaves_no_file(tmp_path):
    target = tmp_path / "wrong.bvh"
    with pytest.raises(InputError, match="dt must be a finite number above 0"):
        write_bvh(target, Motion(ARM, FRAMES), 0.0)
    with pytest.raises(InputError, match="at least one frame"):
        write_bvh(target, Motion(ARM, FRAMES[:0]), DT)
    for name in ("root", "upper arm", ""):
        body = Skeleton((ROOT, Bone(name, 0, (1.0, 0.0, 0.0), 2.0, (0.0, 0.0, 0.0), ())), 1.0)
        with pytest.raises(InputError, match=f"a name of its own, without spaces; received '{name}'"):
            write_bvh(target, Motion(body, FRAMES[:, :6]), DT)
    assert list(tmp_path.iterdir()) == []


def pictures_of(gif):
    """The pictures of a GIF, as pixels, and how long each is shown, in milliseconds."""
    with Image.open(io.BytesIO(gif)) as image:
        assert image.format == "GIF" and image.info["loop"] == 0
        pictures, shown = [], []
        for number in range(getattr(image, "n_frames", 1)):
            image.seek(number)
            shown.append(image.info["duration"])
            pictures.append(np.array(image.convert("RGB")).astype(int))
    return np.array(pictures), shown


def count_of(colour, pixels):
    wanted = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
    return int((np.abs(pixels - wanted).max(axis=-1) < 6).sum())


@pytest.mark.parametrize(
    ("dt", "frames", "pictures"),
    [(1 / 30, 30, 15), (1 / 30, 31, 16), (1 / 120, 120, 15), (0.1, 10, 10), (1 / 15, 15, 15)],
)
def test_a_film_keeps_its_time(dt, frames, pictures):
    seen, shown = pictures_of(film(stride(frames=frames), BODY, dt))
    assert seen.shape == (pictures, 320, 320, 3)
    step = {1 / 30: 2, 1 / 120: 8}.get(dt, 1)
    assert sum(shown) == pytest.approx(1000 * step * dt * pictures, abs=10)
    assert min(shown) >= 60 and max(shown) - min(shown) <= 10


def test_the_same_motion_gives_the_same_film_and_another_another():
    first, second, other = (film(stride(size), BODY, DT, "walk") for size in (20.0, 20.0, 5.0))
    assert first == second != other
    assert film(stride(20.0), BODY, DT, "run") != first
    assert film(stride(20.0), BODY, DT, "much too long for a line " * 20) != first


def test_the_camera_goes_along_but_the_ground_does_not():
    """A stiff body that glides: it stays where it is in the picture, and only the ground moves."""
    gliding = stride(0.0)
    seen, _ = pictures_of(film(gliding, BODY, DT))
    red = np.abs(seen[..., 0] - seen[..., 1]) > 20
    assert (red == red[0]).all() and red[0].sum() > 500
    ground = (seen[:, 250:] < 200).all(axis=-1) & ~red[:, 250:]
    assert all((one != other).any() for one, other in pairwise(ground))
    standing, _ = pictures_of(film(gliding - gliding[:, :1], BODY, DT))
    assert (standing[:, 250:] == standing[0, 250:]).all()


def test_a_film_has_the_colours_of_its_frames():
    seen, _ = pictures_of(film(stride(), BODY, DT, colours=[WALK] * 10 + [RUN] * 10 + [WALK] * 10))
    walking = np.array([frame < 10 or frame >= 20 for frame in range(0, 30, 2)])
    for colour, here in ((WALK, walking), (RUN, ~walking)):
        assert [count_of(colour, pixels) > 100 for pixels in seen] == here.tolist()
    plain, _ = pictures_of(film(stride(), BODY, DT))
    assert all(count_of(MODEL, pixels) > 100 for pixels in plain)
    np.testing.assert_array_equal(pictures_of(film(stride(), BODY, DT, colours=[MODEL] * 30))[0], plain)


@pytest.mark.parametrize("skeleton", [ARM, Skeleton((ROOT,), 1.0)])
def test_any_skeleton_makes_a_film_and_one_frame_too(skeleton):
    joints = Motion(skeleton, FRAMES[:, : len(skeleton.channels)]).joints()
    assert len(pictures_of(film(joints, skeleton, 0.5))[0]) == 2
    assert film(joints[:1], skeleton, 0.5).startswith(b"GIF89a")


def test_what_cannot_be_a_film_is_refused():
    joints = stride()
    for wrong in (joints[:0], joints[:, 1:]):
        with pytest.raises(InputError, match=r"the joints of a film must be \[T, 5, 3\]"):
            film(wrong, BODY, DT)
    with pytest.raises(InputError, match="some are not finite"):
        film(joints * np.nan, BODY, DT)
    with pytest.raises(InputError, match="dt must be a finite number above 0"):
        film(joints, BODY, 0.0)
    with pytest.raises(InputError, match="colours must have a colour per frame, 30; received 29"):
        film(joints, BODY, DT, colours=[WALK] * 29)
    with pytest.raises(InputError, match="colours must be colours such as 'red' or '#c1272d', received 'rot'"):
        film(joints, BODY, DT, colours=["rot"] * 30)
    many = [f"#0000{number:02x}" for number in range(30)]
    assert film(joints, BODY, DT, colours=(many[:MOST_COLOURS] * 2)[:30]).startswith(b"GIF89a")
    with pytest.raises(InputError, match="at most 15 different colours, received 30"):
        film(joints, BODY, DT, colours=many)


def strip_of(**others):
    return strip_figure({"simulated": stride()}, BODY, "", DT, **others)


def test_poses_of_a_strip_have_the_colours_of_their_phases():
    picture = strip_of(phases=[WALK] * 10 + [RUN] * 10 + [WALK] * 10)
    pixels = (255 * matplotlib.image.imread(io.BytesIO(picture))[..., :3]).round().astype(int)
    thirds = np.array_split(pixels, 3, axis=1)
    for colour, here in ((WALK, [True, False, True]), (RUN, [False, True, False])):
        for side in ("left", "middle", "right"):
            assert [count_of(shades(colour)[side], third) > 50 for third in thirds] == here, (colour, side)


def test_phases_of_the_usual_colour_change_nothing():
    assert strip_of(phases=[MEASURED] * 30) == strip_of() != strip_of(phases=[RUN] * 30)


def test_a_skeleton_without_sides_has_phases_too():
    joints = Motion(ARM, FRAMES).joints()
    assert strip_figure({"arm": joints}, ARM, "", DT, phases=[WALK, RUN]).startswith(b"\x89PNG")


def test_phases_that_fit_no_strip_are_refused():
    with pytest.raises(InputError, match="phases must have a colour per frame, 30; received 3"):
        strip_of(phases=[WALK, RUN, WALK])
    with pytest.raises(InputError, match=r"phases must be colours .* received 'walking'"):
        strip_of(phases=["walking"] * 30)
    with pytest.raises(InputError, match="phases colour a single motion, received 2; draw one strip per motion"):
        strip_figure({"measured": stride(), "simulated": stride()}, BODY, "", DT, phases=[WALK] * 30)
