"""The avatar frame by frame, without its page."""

import threading

import numpy as np
import pytest
from revarb.motion.avatar.player import GHOSTS, Player

from revarb.errors import InputError
from revarb.motion import cmu35
from revarb.motion.avatar import player as players
from revarb.motion.avatar.model import HIP
from support.avatars import gaits, trained


@pytest.fixture
def model(recorded_data):
    return trained()


@pytest.fixture
def player(model):
    return Player(model, gaits())


def walk_on(player, frames):
    return [player.tick() for _ in range(frames)]


def test_the_frames_are_the_mean_only_run_under_what_was_told(model, player):
    walk_on(player, 9)
    player.steer(2.0)
    walk_on(player, 15)
    played = player.history()
    np.testing.assert_array_equal(played.speeds, np.repeat([player.walking, 2.0], [10, 15]))
    expected = model.simulate(played.speeds[:, None], "mean", start=model.final_states[0]).mean
    np.testing.assert_allclose(played.values, expected, rtol=1e-9, atol=1e-9)


def test_a_scene_is_the_last_pose_on_a_treadmill(player):
    scene = walk_on(player, 5)[-1]
    played = player.history()
    still = cmu35.pose(played.values[-1:], played.channels)
    np.testing.assert_allclose(scene.joints, still.joints()[0] * still.skeleton.unit, atol=1e-12)
    assert scene.joints[0, 0] == scene.joints[0, 2] == 0.0 and scene.ghosts.shape == (0, *scene.joints.shape)
    assert scene.time == pytest.approx(5 * player.dt)


def test_it_goes_as_far_as_it_was_told(player):
    player.steer(3.0)
    scene = walk_on(player, 30)[-1]
    motion = player.history().motion()
    way = motion.root[-1, cmu35.FORWARD] * motion.skeleton.unit
    assert scene.distance == pytest.approx(way) == pytest.approx((player.walking + 29 * 3.0) * player.dt)


def test_ghosts_are_as_many_as_asked_for_and_around_the_run(player):
    assert [len(player.tick(count).ghosts) for count in (-1, 0, 3, GHOSTS, 99)] == [0, 0, 3, GHOSTS, GHOSTS]
    scene = player.tick(GHOSTS)
    assert 0.0 < np.abs(scene.ghosts - scene.joints).max() < 1.0


def test_it_stands_still_and_begins_anew(player):
    first = walk_on(player, 10)
    player.play(False)
    assert player.tick().time == player.tick().time == first[-1].time and not player.playing
    player.reset()
    assert player.tick().time == 0.0 and len(player.history().speeds) == 1
    player.play()
    for again, before in zip(walk_on(player, 10), first, strict=True):
        np.testing.assert_array_equal(again.joints, before.joints)


def test_a_preset_is_followed_again_and_again_until_the_hand_takes_over(player):
    player.presets = {"short": np.array([1.0, 2.0, 3.0])}
    player.follow("short")
    assert [scene.speed for scene in walk_on(player, 5)] == [1.0, 2.0, 3.0, 1.0, 2.0] and player.preset == "short"
    player.reset()
    assert [scene.speed for scene in walk_on(player, 2)] == [2.0, 3.0]
    player.steer(1.5)
    assert player.tick().speed == 1.5 and player.preset is None
    with pytest.raises(InputError, match="no preset 'long'; there are short"):
        player.follow("long")


def test_the_presets_are_those_of_the_experiment(player):
    assert list(player.presets) == ["step", "ramp", "sine", "stop and go"]
    assert player.fastest > max(signal.max() for signal in player.presets.values())


@pytest.mark.parametrize(
    ("told", "goes"), [(-5.0, 0.0), (1e300, 4.0), (2, 2.0), (float("nan"), 1.0), (float("inf"), 1.0)]
)
def test_no_speed_is_too_wild(player, told, goes):
    player.fastest = 4.0
    player.steer(1.0)
    player.steer(told)
    assert player.tick().speed == goes


def test_the_curves_are_the_last_seconds(player):
    player.steer(2.0)
    walk_on(player, 40)
    curves, played = player.traces(1.0), player.history()
    assert len(curves.time) == 30 and curves.time[0] == pytest.approx(11 * player.dt)
    assert curves.time[-1] == pytest.approx(40 * player.dt)
    np.testing.assert_array_equal(curves.hip, played.values[-30:, played.channels.index(HIP)])
    np.testing.assert_array_equal(curves.speed, played.speeds[-30:])
    assert (curves.deviation > 0.0).all()
    low, high = player.hip_range
    assert low < curves.hip.min() < curves.hip.max() < high
    player.reset()
    assert len(player.traces(1.0).time) == 1


def test_ten_minutes_are_remembered(model, monkeypatch):
    monkeypatch.setattr(players, "REMEMBERED", 0.5)
    player = Player(model, gaits())
    player.steer(2.0)
    scene = walk_on(player, 40)[-1]
    assert len(player.history().speeds) == 15 and scene.time == pytest.approx(40 * player.dt)


def test_many_hands_do_no_harm(player):
    """As viser does it: every button in a thread of its own, while frames go on."""
    ends, wrong = threading.Event(), []

    def hand(number):
        rng = np.random.default_rng(number)
        acts = [player.reset, lambda: player.steer(rng.uniform(-9, 9)), lambda: player.follow("sine"), player.history,
                lambda: player.traces(8.0), lambda: player.play(rng.random() < 0.7)]  # fmt: skip
        try:
            while not ends.wait(0.002):
                acts[rng.integers(len(acts))]()
        except Exception as error:
            wrong.append(error)

    hands = [threading.Thread(target=hand, args=(number,)) for number in range(6)]
    for each in hands:
        each.start()
    scenes = [player.tick(2) for _ in range(150)]
    ends.set()
    for each in hands:
        each.join()
    assert not wrong and all(np.isfinite(scene.joints).all() for scene in scenes)
    assert len(player.history().speeds) == len(player.history().values)
