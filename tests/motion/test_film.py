"""Animated pictures of motions."""

import io
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from revarb.errors import InputError
from revarb.motion.film import MAX_COLOURS, render_film
from revarb.motion.kinematics import Motion, Skeleton
from revarb.runtime.figure_style import MODEL
from support.bodies import ARM, ARM_FRAMES, BODY, DT, ROOT, RUN, WALK, count_of, stride


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


@pytest.mark.parametrize(
    ("dt", "frames", "pictures"),
    [(1 / 30, 30, 15), (1 / 30, 31, 16), (1 / 120, 120, 15), (0.1, 10, 10), (1 / 15, 15, 15)],
)
def test_a_film_has_the_duration_of_its_motion(dt, frames, pictures):
    seen, shown = pictures_of(render_film(stride(frames=frames), BODY, dt))
    assert seen.shape == (pictures, 320, 320, 3)
    step = {1 / 30: 2, 1 / 120: 8}.get(dt, 1)
    assert sum(shown) == pytest.approx(1000 * step * dt * pictures, abs=10)
    assert min(shown) >= 60 and max(shown) - min(shown) <= 10


def test_the_same_motion_gives_the_same_film_and_another_another():
    first, second, other = (render_film(stride(size), BODY, DT, "walk") for size in (20.0, 20.0, 5.0))
    assert first == second != other
    assert render_film(stride(20.0), BODY, DT, "run") != first
    assert render_film(stride(20.0), BODY, DT, "much too long for a line " * 20) != first


def test_the_camera_follows_the_body():
    """A rigid body in translation is fixed in the picture, and only the ground moves."""
    gliding = stride(0.0)
    seen, _ = pictures_of(render_film(gliding, BODY, DT))
    red = np.abs(seen[..., 0] - seen[..., 1]) > 20
    assert (red == red[0]).all() and red[0].sum() > 500
    ground = (seen[:, 250:] < 200).all(axis=-1) & ~red[:, 250:]
    assert all((one != other).any() for one, other in pairwise(ground))
    standing, _ = pictures_of(render_film(gliding - gliding[:, :1], BODY, DT))
    assert (standing[:, 250:] == standing[0, 250:]).all()


def test_a_film_has_the_colours_of_its_frames():
    seen, _ = pictures_of(render_film(stride(), BODY, DT, colours=[WALK] * 10 + [RUN] * 10 + [WALK] * 10))
    walking = np.array([frame < 10 or frame >= 20 for frame in range(0, 30, 2)])
    for colour, here in ((WALK, walking), (RUN, ~walking)):
        assert [count_of(colour, pixels) > 100 for pixels in seen] == here.tolist()
    plain, _ = pictures_of(render_film(stride(), BODY, DT))
    assert all(count_of(MODEL, pixels) > 100 for pixels in plain)
    np.testing.assert_array_equal(pictures_of(render_film(stride(), BODY, DT, colours=[MODEL] * 30))[0], plain)


@pytest.mark.parametrize("skeleton", [ARM, Skeleton((ROOT,), 1.0)])
def test_any_skeleton_makes_a_film_and_one_frame_too(skeleton):
    joints = Motion(skeleton, ARM_FRAMES[:, : len(skeleton.channels)]).joints()
    assert len(pictures_of(render_film(joints, skeleton, 0.5))[0]) == 2
    assert render_film(joints[:1], skeleton, 0.5).startswith(b"GIF89a")


def test_invalid_films_are_refused():
    joints = stride()
    for wrong in (joints[:0], joints[:, 1:]):
        with pytest.raises(InputError, match=r"the joints of a film must be \[T, 5, 3\]"):
            render_film(wrong, BODY, DT)
    with pytest.raises(InputError, match="some are not finite"):
        render_film(joints * np.nan, BODY, DT)
    with pytest.raises(InputError, match="dt must be a finite number above 0"):
        render_film(joints, BODY, 0.0)
    with pytest.raises(InputError, match="colours must have a colour per frame, 30; received 29"):
        render_film(joints, BODY, DT, colours=[WALK] * 29)
    with pytest.raises(InputError, match="colours must be colours such as 'red' or '#c1272d', received 'rot'"):
        render_film(joints, BODY, DT, colours=["rot"] * 30)
    many = [f"#0000{number:02x}" for number in range(30)]
    assert render_film(joints, BODY, DT, colours=(many[:MAX_COLOURS] * 2)[:30]).startswith(b"GIF89a")
    with pytest.raises(InputError, match="at most 15 different colours, received 30"):
        render_film(joints, BODY, DT, colours=many)
