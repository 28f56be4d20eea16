"""Strips of poses."""

import io

import matplotlib.image
import numpy as np
import pytest

from revarb.errors import InputError
from revarb.motion.kinematics import Motion
from revarb.motion.strip import draw_strip, group_bones, shade_sides
from revarb.runtime.figure_style import MEASURED, MODEL, encode_figure
from support.bodies import ARM, ARM_FRAMES, BODY, DT, RUN, WALK, count_of, stride


def strip_png(*arguments, **options):
    """A strip as the bytes of its file."""
    return encode_figure(draw_strip(*arguments, **options), "png")


def test_sides_follow_from_pairs_of_names():
    assert group_bones(BODY) == {"left": [(1, 0)], "middle": [(3, 0), (4, 3)], "right": [(2, 0)]}


def test_a_strip_has_a_row_per_motion():
    sizes = {}
    for names in (["measured"], ["measured", "simulated"], ["measured", "one", "other"]):
        picture = strip_png(dict.fromkeys(names, stride()), BODY, "a$b$", DT, scored_from=10)
        assert picture.startswith(b"\x89PNG")
        sizes[len(names)] = matplotlib.image.imread(io.BytesIO(picture)).shape
    assert sizes[1][1] == sizes[2][1] == sizes[3][1]
    assert sizes[3][0] - sizes[2][0] == pytest.approx(sizes[2][0] - sizes[1][0], abs=1)


def test_a_strip_has_the_colours_of_both_sides():
    picture = strip_png({"measured": stride(), "simulated": stride(20.0)}, BODY, "", DT)
    pixels = (255 * matplotlib.image.imread(io.BytesIO(picture))[..., :3]).round().astype(int)
    upper, lower = np.array_split(pixels, 2)
    assert shade_sides(MODEL) == {"left": "#e5a4a7", "middle": "#d4686c", "right": MODEL}
    for colour, here, there in ((MEASURED, upper, lower), (MODEL, lower, upper)):
        for side in ("left", "right"):
            wanted = [int(shade_sides(colour)[side][k : k + 2], 16) for k in (1, 3, 5)]
            shown = [(np.abs(half - wanted).max(axis=-1) < 3).sum() for half in (here, there)]
            assert shown[0] > 300 and shown[0] > 4 * shown[1], (colour, side)


def test_the_same_motions_give_the_same_strip_and_others_another():
    first, second, other = (
        strip_png({"measured": stride(), "simulated": stride(size)}, BODY, "t", DT) for size in (20.0, 20.0, 5.0)
    )
    assert first == second != other


@pytest.mark.parametrize("frames", [1, 2, 5])
def test_a_short_motion_has_fewer_poses(frames):
    assert strip_png({"measured": stride(frames=frames)}, BODY, "", DT, scored_from=1).startswith(b"\x89PNG")


def test_invalid_strips_are_refused():
    with pytest.raises(InputError, match="no motion to draw"):
        strip_png({}, BODY, "", DT)
    with pytest.raises(InputError, match=r"joints of 'simulated' must be \(30, 5, 3\), as of the first motion"):
        strip_png({"measured": stride(), "simulated": stride()[:-1]}, BODY, "", DT)


def strip_of(**others):
    return strip_png({"simulated": stride()}, BODY, "", DT, **others)


def test_poses_of_a_strip_have_the_colours_of_their_phases():
    picture = strip_of(phases=[WALK] * 10 + [RUN] * 10 + [WALK] * 10)
    pixels = (255 * matplotlib.image.imread(io.BytesIO(picture))[..., :3]).round().astype(int)
    thirds = np.array_split(pixels, 3, axis=1)
    for colour, here in ((WALK, [True, False, True]), (RUN, [False, True, False])):
        for side in ("left", "middle", "right"):
            assert [count_of(shade_sides(colour)[side], third) > 50 for third in thirds] == here, (colour, side)


def test_phases_of_the_usual_colour_change_nothing():
    assert strip_of(phases=[MEASURED] * 30) == strip_of() != strip_of(phases=[RUN] * 30)


def test_a_skeleton_without_sides_has_phases_too():
    joints = Motion(ARM, ARM_FRAMES).joints()
    assert strip_png({"arm": joints}, ARM, "", DT, phases=[WALK, RUN]).startswith(b"\x89PNG")


def test_phases_that_fit_no_strip_are_refused():
    with pytest.raises(InputError, match="phases must have a colour per frame, 30; received 3"):
        strip_of(phases=[WALK, RUN, WALK])
    with pytest.raises(InputError, match=r"phases must be colours .* received 'walking'"):
        strip_of(phases=["walking"] * 30)
    with pytest.raises(InputError, match="phases are for a single motion, received 2; draw one strip per motion"):
        strip_png({"measured": stride(), "simulated": stride()}, BODY, "", DT, phases=[WALK] * 30)
