"""Strips of poses, and animated pictures of motions."""

import io
from itertools import pairwise

import matplotlib.image
import numpy as np
import pytest
from PIL import Image
from PIL.ImageSequence import Iterator

from revarb import InputError
from studies.output import MEASURED, MODEL, encode_figure
from studies.paper.motion.film import MAX_COLOURS, render_film
from studies.paper.motion.strip import draw_strip, group_bones, shade_sides
from support.bodies import BODY, DT, RUN, WALK, count_of, stride

PHASES = [WALK] * 10 + [RUN] * 10 + [WALK] * 10
MANY = [f"#0000{number:02x}" for number in range(30)]


def strip_png(strips, **options):
    """A strip as the bytes of its file."""
    return encode_figure(draw_strip(strips, BODY, "a$b$", DT, **options), "png")


def pixels_of(picture):
    return (255 * matplotlib.image.imread(io.BytesIO(picture))[..., :3]).round().astype(int)


def pictures_of(gif):
    """The pictures of a GIF, as pixels, and how long each is shown, in milliseconds."""
    with Image.open(io.BytesIO(gif)) as image:
        assert image.format == "GIF" and image.info["loop"] == 0
        frames = [(np.array(each.convert("RGB")).astype(int), each.info["duration"]) for each in Iterator(image)]
    return np.array([pixels for pixels, _ in frames]), [shown for _, shown in frames]


def test_a_strip_has_a_row_per_motion():
    assert group_bones(BODY) == {"left": [(1, 0)], "middle": [(3, 0), (4, 3)], "right": [(2, 0)]}
    pictures = [strip_png({str(k): stride() for k in range(count)}, scored_from=10) for count in (1, 2, 3)]
    heights, widths = zip(*(pixels_of(each).shape[:2] for each in pictures), strict=True)
    assert len(set(widths)) == 1 and np.ptp(np.diff(heights)) <= 1 < heights[1] - heights[0]
    first, second, other = (strip_png({"measured": stride(), "simulated": stride(size)}) for size in (20.0, 20.0, 5.0))
    assert first == second != other


def test_a_strip_has_the_colours_of_both_sides():
    pixels = pixels_of(strip_png({"measured": stride(), "simulated": stride(20.0)}))
    upper, lower = np.array_split(pixels, 2)
    assert shade_sides(MODEL) == {"left": "#e5a4a7", "middle": "#d4686c", "right": MODEL}
    for colour, here, there in ((MEASURED, upper, lower), (MODEL, lower, upper)):
        for side in ("left", "right"):
            shown = [count_of(shade_sides(colour)[side], half) for half in (here, there)]
            assert shown[0] > 300 and shown[0] > 4 * shown[1], (colour, side)


@pytest.mark.parametrize(
    ("dt", "frames", "pictures"),
    [(1 / 30, 31, 16), (1 / 120, 120, 15), (0.1, 10, 10)],
)
def test_a_film_has_the_duration_of_its_motion(dt, frames, pictures):
    seen, shown = pictures_of(render_film(stride(frames=frames), BODY, dt))
    assert seen.shape == (pictures, 320, 320, 3)
    assert sum(shown) == pytest.approx(1000 * round(frames / pictures) * dt * pictures, abs=10)
    assert min(shown) >= 60 and max(shown) - min(shown) <= 10


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
    seen, _ = pictures_of(render_film(stride(), BODY, DT, colours=PHASES))
    walking = np.array([PHASES[frame] == WALK for frame in range(0, 30, 2)])
    for colour, here in ((WALK, walking), (RUN, ~walking)):
        assert [count_of(colour, pixels) > 100 for pixels in seen] == here.tolist()
    first, again, other = (render_film(stride(size), BODY, DT, "long title " * 20) for size in (20.0, 20.0, 5.0))
    assert first == again != other
    assert render_film(stride(), BODY, DT, colours=(MANY[:MAX_COLOURS] * 2)[:30]).startswith(b"GIF89a")
    with pytest.raises(InputError, match="at most 15 different colours, received 30"):
        render_film(stride(), BODY, DT, colours=MANY)
