"""The avatar frame by frame, without its page."""

import threading

import numpy as np
import pytest

from revarb.errors import InputError
from revarb.motion import cmu35
from revarb.motion.avatar import live_avatar
from revarb.motion.avatar.live_avatar import GHOSTS, LiveAvatar
from revarb.motion.avatar.model import HIP
from support.avatars import gaits, trained


@pytest.fixture
def model(recorded_data):
    return trained()


@pytest.fixture
def avatar(model):
    return LiveAvatar(model, gaits())


def walk_on(avatar, frames):
    return [avatar.tick() for _ in range(frames)]


def test_the_frames_are_the_mean_only_run_under_the_commanded_speed(model, avatar):
    walk_on(avatar, 9)
    avatar.set_speed(2.0)
    walk_on(avatar, 15)
    played = avatar.history()
    np.testing.assert_array_equal(played.speeds, np.repeat([avatar.walking, 2.0], [10, 15]))
    expected = model.simulate(played.speeds[:, None], "mean", start=model.final_states[0]).mean
    np.testing.assert_allclose(played.values, expected, rtol=1e-9, atol=1e-9)


def test_a_scene_is_the_last_pose_on_a_treadmill(avatar):
    scene = walk_on(avatar, 5)[-1]
    played = avatar.history()
    still = cmu35.to_motion(played.values[-1:], played.channels)
    np.testing.assert_allclose(scene.joints, still.joints()[0] * still.skeleton.metres_per_unit, atol=1e-12)
    assert scene.joints[0, 0] == scene.joints[0, 2] == 0.0 and scene.ghosts.shape == (0, *scene.joints.shape)
    assert scene.time == pytest.approx(5 * avatar.dt)


def test_the_distance_is_that_of_the_commanded_speed(avatar):
    avatar.set_speed(3.0)
    scene = walk_on(avatar, 30)[-1]
    motion = avatar.history().motion()
    way = motion.root[-1, cmu35.FORWARD] * motion.skeleton.metres_per_unit
    assert scene.distance == pytest.approx(way) == pytest.approx((avatar.walking + 29 * 3.0) * avatar.dt)


def test_ghosts_are_as_many_as_asked_for_and_around_the_run(avatar):
    assert [len(avatar.tick(count).ghosts) for count in (-1, 0, 3, GHOSTS, 99)] == [0, 0, 3, GHOSTS, GHOSTS]
    scene = avatar.tick(GHOSTS)
    assert 0.0 < np.abs(scene.ghosts - scene.joints).max() < 1.0


def test_pause_and_reset(avatar):
    first = walk_on(avatar, 10)
    avatar.play(False)
    assert avatar.tick().time == avatar.tick().time == first[-1].time and not avatar.playing
    avatar.reset()
    assert avatar.tick().time == 0.0 and len(avatar.history().speeds) == 1
    avatar.play()
    for again, before in zip(walk_on(avatar, 10), first, strict=True):
        np.testing.assert_array_equal(again.joints, before.joints)


def test_a_preset_repeats_until_a_speed_is_set(avatar):
    avatar.presets = {"short": np.array([1.0, 2.0, 3.0])}
    avatar.follow_preset("short")
    assert [scene.speed for scene in walk_on(avatar, 5)] == [1.0, 2.0, 3.0, 1.0, 2.0] and avatar.preset == "short"
    avatar.reset()
    assert [scene.speed for scene in walk_on(avatar, 2)] == [2.0, 3.0]
    avatar.set_speed(1.5)
    assert avatar.tick().speed == 1.5 and avatar.preset is None
    with pytest.raises(InputError, match="unknown preset 'long'; known are short"):
        avatar.follow_preset("long")


def test_the_presets_are_those_of_the_experiment(avatar):
    assert list(avatar.presets) == ["step", "ramp", "sine", "stop and go"]
    assert avatar.fastest > max(signal.max() for signal in avatar.presets.values())


@pytest.mark.parametrize(
    ("commanded", "expected"), [(-5.0, 0.0), (1e300, 4.0), (2, 2.0), (float("nan"), 1.0), (float("inf"), 1.0)]
)
def test_speeds_are_limited(avatar, commanded, expected):
    avatar.fastest = 4.0
    avatar.set_speed(1.0)
    avatar.set_speed(commanded)
    assert avatar.tick().speed == expected


def test_the_curves_are_the_last_seconds(avatar):
    avatar.set_speed(2.0)
    walk_on(avatar, 40)
    curves, played = avatar.traces(1.0), avatar.history()
    assert len(curves.time) == 30 and curves.time[0] == pytest.approx(11 * avatar.dt)
    assert curves.time[-1] == pytest.approx(40 * avatar.dt)
    np.testing.assert_array_equal(curves.hip, played.values[-30:, played.channels.index(HIP)])
    np.testing.assert_array_equal(curves.speed, played.speeds[-30:])
    assert (curves.deviation > 0.0).all()
    low, high = avatar.hip_range
    assert low < curves.hip.min() < curves.hip.max() < high
    avatar.reset()
    assert len(avatar.traces(1.0).time) == 1


def test_the_history_is_limited(model, monkeypatch):
    monkeypatch.setattr(live_avatar, "HISTORY_SECONDS", 0.5)
    avatar = LiveAvatar(model, gaits())
    avatar.set_speed(2.0)
    scene = walk_on(avatar, 40)[-1]
    assert len(avatar.history().speeds) == 15 and scene.time == pytest.approx(40 * avatar.dt)


def test_calls_from_several_threads(avatar):
    """viser calls every button's handler in its own thread, while frames are computed."""
    stop, errors = threading.Event(), []

    def click(number):
        rng = np.random.default_rng(number)
        actions = [
            avatar.reset, lambda: avatar.set_speed(rng.uniform(-9, 9)), lambda: avatar.follow_preset("sine"),
            avatar.history, lambda: avatar.traces(8.0), lambda: avatar.play(rng.random() < 0.7),
        ]  # fmt: skip
        try:
            while not stop.wait(0.002):
                actions[rng.integers(len(actions))]()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=click, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    scenes = [avatar.tick(2) for _ in range(150)]
    stop.set()
    for each in threads:
        each.join()
    assert not errors and all(np.isfinite(scene.joints).all() for scene in scenes)
    assert len(avatar.history().speeds) == len(avatar.history().values)
