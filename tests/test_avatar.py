"""The avatar without its page: which model, frame by frame, from many threads, and out to files."""

import functools
import os
import socket
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation

import small
from revarb import cli
from revarb.config.recipe import Recipe, Stage
from revarb.config.rgp import RGP
from revarb.data.tables.table import Table
from revarb.errors import InputError
from revarb.models.ensemble import Ensemble
from revarb.models.model_file import load
from revarb.motion import cmu35
from revarb.motion.acclaim import read_motion, read_skeleton
from revarb.motion.avatar import model as models
from revarb.motion.avatar import player as players
from revarb.motion.avatar.body import Body
from revarb.motion.avatar.export import export
from revarb.motion.avatar.model import HIP
from revarb.motion.avatar.player import GHOSTS, Player
from revarb.motion.avatar.shape import SHADES, Shape, rgb, turned_to
from revarb.motion.gaits import Gaits
from revarb.motion.strip import tint
from revarb.runtime.figure_style import MODEL
from test_motion_export import read_bvh

QUICK = Recipe(
    hidden_noise=0.01, output_noise=0.3, latent_variance=0.1, stages=(Stage(("mu", "lam", "zeta", "w"), 20),)
)
TINY = RGP(lags=6, input_lags=1, hidden=1, inducing=30, latent_dim=3, recipe=QUICK, calibrate=False)
LEFT_FOOT = "lfoot"


@functools.cache
def gaits():
    return Gaits((cmu35.controlled(1),), (cmu35.controlled(17),))


@functools.cache
def trained():
    return TINY.fit([*gaits().walks, *gaits().runs])


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


# --- bodies ----------------------------------------------------------------------------------------------------------


def test_a_body_has_the_poses_of_the_recorded_motion(recorded_data):
    record = cmu35.controlled(17)
    poses = cmu35.pose(record.y, record.output_names)
    expected = poses.joints() * poses.skeleton.unit
    np.testing.assert_allclose(Body.of(record.output_names).joints(record.y), expected, atol=1e-12)


def test_turns_bring_z_into_every_direction(rng):
    directions = np.concatenate([rng.normal(size=(50, 3)), [[0, 0, 2.0], [0, 0, -3.0], [1e-12, 0, -1], [0, 0, 0]]])
    turns = turned_to(directions)
    np.testing.assert_allclose(np.linalg.norm(turns, axis=1), 1.0)
    turned = Rotation.from_quat(turns[:-1], scalar_first=True).apply([0.0, 0.0, 1.0])
    lengths = np.linalg.norm(directions[:-1], axis=1, keepdims=True)
    np.testing.assert_allclose(turned, directions[:-1] / lengths, atol=1e-9)
    np.testing.assert_array_equal(turns[-1], [1.0, 0.0, 0.0, 0.0])


def test_sticks_reach_from_joint_to_joint_and_sides_have_their_colours(player):
    joints, body = player.tick().joints, player.body.skeleton
    sticks, balls = Shape.of(body, MODEL).sticks, Shape.of(body, MODEL).balls
    half = 0.5 * sticks.sizes[:, 2:] * Rotation.from_quat(sticks.turns(joints), scalar_first=True).apply([0, 0, 1.0])
    np.testing.assert_allclose(sticks.middles(joints) + half, joints[sticks.ends[:, 0]], atol=1e-6)
    np.testing.assert_allclose(sticks.middles(joints) - half, joints[sticks.ends[:, 1]], atol=1e-6)
    foot = body.names.index(LEFT_FOOT)
    (which,) = np.flatnonzero(sticks.ends[:, 0] == foot)
    assert tuple(sticks.colours[which]) == rgb(tint(MODEL, SHADES["left"]))
    assert len(balls.sizes) == 2 * len(sticks.sizes) + 1 and balls.sizes.max() == balls.sizes[-1].max() > 0.08


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


# --- models ----------------------------------------------------------------------------------------------------------


def renamed(model, **changes):
    return replace(model, frame=replace(model.frame, **changes))


def test_only_an_avatar_moves(model, tmp_path):
    def refused(other):
        with pytest.raises(InputError) as error:
            models.open_model(other.save(tmp_path / "m.rgp"))
        assert str(error.value).startswith(f"{tmp_path / 'm.rgp'} cannot move the avatar: ")
        return str(error.value).split(": ", 1)[1]

    assert models.open_model(model.save(tmp_path / "m.rgp")).output_names == model.output_names
    assert refused(renamed(model, input_names=("force",))) == "its only input must be 'speed', but they are ['force']"
    names = model.output_names
    assert "lack 'root.ty'" in refused(renamed(model, output_names=("height", *names[1:])))
    assert "'ltibia.rz' is none of them" in refused(
        renamed(model, output_names=tuple("ltibia.rz" if name == "ltibia.rx" else name for name in names))
    )
    assert "sampling interval must be 0.0083 to 0.2 s, but is 1 s" in refused(renamed(model, dt=1.0))


@pytest.mark.slow
def test_an_ensemble_does_not_move(tmp_path):
    several = Ensemble.from_members([small.spec().fit(small.record(), seed=seed) for seed in (0, 1)])
    with pytest.raises(InputError, match="holds several fits; save one of its members"):
        models.open_model(several.save(tmp_path / "m.rgp"))


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "user_cache_path", lambda name: tmp_path / name)
    monkeypatch.setattr(models, "avatar_spec", lambda: TINY)
    return tmp_path


def test_another_recipe_is_kept_elsewhere(own_cache):
    here = models.kept_path(TINY)
    assert here == models.kept_path(TINY) != models.kept_path(replace(TINY, inducing=31))
    assert here.parent == own_cache / "revarb" / "avatar" and here.name.startswith("avatar-")


def test_a_model_is_trained_once(capsys, own_cache, model, monkeypatch):
    from revarb.cli.avatar import _trained_model

    trainings = []
    monkeypatch.setattr("revarb.cli.avatar.train_model", lambda: trainings.append(1) or model)
    assert models.kept_model() is None
    assert _trained_model() is model
    assert "training the avatar" in capsys.readouterr().out
    assert _trained_model().bound == load(models.kept_path(TINY)).bound == model.bound
    assert len(trainings) == 1 and capsys.readouterr().out == ""
    models.kept_path(TINY).write_bytes(b"cut short")
    _trained_model()
    assert len(trainings) == 2 and models.kept_model() is not None


def test_a_cache_that_cannot_be_written_is_a_warning(own_cache, model, monkeypatch):
    from revarb.cli.avatar import _trained_model

    (own_cache / "revarb").write_text("not a folder")
    monkeypatch.setattr("revarb.cli.avatar.train_model", lambda: model)
    with pytest.warns(UserWarning, match="the model is not kept for the next time: cannot create"):
        assert _trained_model() is model


def test_training_takes_the_recipe_and_its_motions(recorded_data, own_cache, monkeypatch):
    monkeypatch.setattr(models, "avatar_records", lambda: [*gaits().walks, *gaits().runs])
    monkeypatch.setattr(models, "avatar_spec", lambda: replace(TINY, recipe=Recipe(stages=(Stage(("mu",), 1),))))
    model = models.train_model()
    assert models.check_model(model) is model and model.seed == models.SEED


# --- the command -----------------------------------------------------------------------------------------------------


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        cli.main(["avatar", *map(str, arguments)])
    return end.value.code, capsys.readouterr().err


def test_without_viser_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "revarb.motion.avatar.page", raising=False)
    monkeypatch.setitem(sys.modules, "viser", None)
    assert run(capsys) == (2, 'error: the page needs viser; pip install "revarb[avatar]"\n')


def test_a_taken_port_is_one_line(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        expected = (
            f"error: cannot serve on 127.0.0.1, port {port}: Address already in use; choose another --port or --host\n"
        )
        assert run(capsys, "--port", port) == (2, expected)


def test_a_host_that_is_not_here_is_one_line(capsys):
    code, err = run(capsys, "--host", "192.0.2.1", "--port", 0)
    assert code == 2 and err.startswith("error: cannot serve on 192.0.2.1, port 0: ") and err.count("\n") == 1


@pytest.mark.parametrize("content", [None, b"", b"no model"])
def test_a_wrong_model_file_is_one_line(capsys, in_empty_folder, content):
    if content is not None:
        (in_empty_folder / "m.rgp").write_bytes(content)
    code, err = run(capsys, "--model", "m.rgp", "--port", 0)
    assert code == 2 and err.startswith("error: ") and "m.rgp" in err and err.count("\n") == 1


def test_missing_motions_are_one_line(capsys, model, tmp_path, monkeypatch):
    file = model.save(tmp_path / "m.rgp")
    monkeypatch.setitem(os.environ, "REVARB_DATA", str(tmp_path))
    code, err = run(capsys, "--model", file, "--port", 0)
    assert code == 2 and "REVARB_DATA is set, but there is no" in err and err.count("\n") == 1
