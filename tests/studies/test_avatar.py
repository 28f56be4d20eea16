"""The avatar: measures of its motions, the model that moves it, frames in real time, exports, and the command."""

import os
import re
import socket
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import revarb
from studies.__main__ import main
from studies.paper import avatar as study
from studies.paper.motion import avatar_model, cmu35, live_avatar
from studies.paper.motion.avatar_model import HIP, Gaits
from studies.paper.motion.live_avatar import SAMPLED_RUNS, LiveAvatar
from studies.paper.motion.motion_files import read_motion, read_skeleton
from studies.study import run_fits
from support import small
from support.avatars import TINY, gaits, trained
from support.bodies import read_bvh


@pytest.fixture
def model(recorded_data):
    return trained()


@pytest.fixture
def avatar(model):
    return LiveAvatar(model, gaits())


def walk_on(avatar, frames):
    return [avatar.tick() for _ in range(frames)]


def test_a_frequency_is_found():
    time = np.arange(300) / 30.0
    signal = 3.0 + 0.2 * time + np.sin(2 * np.pi * 1.4 * time) + 0.3 * np.sin(2 * np.pi * 2.8 * time)
    assert study.find_frequency(signal, 1 / 30.0) == pytest.approx(1.4, abs=0.01)
    assert avatar_model.AVATAR.hidden == 1 and avatar_model.AVATAR.recognition.hidden == (500, 200)


def test_range_excess_jumps_and_settling_are_measured(recorded_data):
    known = Gaits.load()
    walk, run = known.walks[0], known.runs[0]
    found = study.measure_motion(walk.y, walk.u[:, 0], known, cmu35.DT)
    (phase,) = found["phases"]
    assert found["range_excess"] == 0.0 and found["jump_ratio"] <= 1.0
    assert phase["gait"] == "walk" and phase["settled_after"] == 0.0
    angles = np.concatenate([record.y[:, 7] for record in known.records])
    wild = walk.y.copy()
    wild[50, 7] = angles.max() + 0.3 * np.ptp(angles)
    found = study.measure_motion(wild, walk.u[:, 0], known, cmu35.DT)
    assert found["range_excess"] == pytest.approx(0.3) and found["jump_ratio"] > 2.0
    late = np.concatenate([run.y[:30], walk.y[:60]])  # a run before the walk that is commanded
    assert study.find_settling_time(late, known.walks, known, cmu35.DT) == pytest.approx(1.0, abs=0.1)


@pytest.mark.slow
def test_a_quick_study_writes_model_strips_and_exports(recorded_data, tmp_path):
    recipe = revarb.Recipe(stages=(revarb.Stage(("lam",), 1),), kmeans_starts=1)
    quick = study.Avatar()
    quick.spec = revarb.RGP(6, 15, hidden=1, inducing=10, latent_dim=3, recipe=recipe, calibrate=False)
    rows, drawn = run_fits(quick)
    assert [row["signal"] for row in rows] == ["step", "ramp", "sine", "stop and go"] and len(quick.targets(rows)) == 5
    assert list(quick.figures(rows, drawn)) == ["avatar_step", "avatar_ramp", "avatar_sine"]
    assert quick.figures(rows, {}) == {} and quick.write_more(tmp_path, rows, {}) == []
    files = sorted(file.name for file in quick.write_more(tmp_path, rows, drawn))
    assert files == ["avatar.rgp", *(f"step.{kind}" for kind in ("amc", "asf", "bvh", "csv", "gif"))]
    assert len((tmp_path / "step.csv").read_text().splitlines()) == 1801


def test_other_models_are_refused(model, tmp_path):
    def renamed(**changes):
        return replace(model, preprocessor=replace(model.preprocessor, **changes))

    names = model.output_names
    assert avatar_model.open_model(model.save(tmp_path / "m.rgp")).output_names == names
    wrong = tuple("ltibia.rz" if name == "ltibia.rx" else name for name in names)
    for other, message in (
        (renamed(input_names=("force",)), "its only input must be 'speed', received ['force']"),
        (renamed(output_names=("height", *names[1:])), "lack 'root.ty'"),
        (renamed(output_names=wrong), "'ltibia.rz' is unknown or repeated"),
        (renamed(dt=1.0), "sampling interval must be 0.0083 to 0.2 s, but is 1 s"),
        (revarb.Mean().fit(small.record()), "a model of type FittedMean; a single FittedRGP is needed"),
    ):
        with pytest.raises(revarb.InputError, match=f"cannot move the avatar: .*{re.escape(message)}"):
            avatar_model.open_model(other.save(tmp_path / "m.rgp"))


def test_a_model_is_trained_once(capsys, tmp_path, model, monkeypatch):
    trainings = []
    monkeypatch.setattr(avatar_model.pooch, "os_cache", lambda name: tmp_path / name)
    monkeypatch.setattr(avatar_model, "AVATAR", TINY)
    monkeypatch.setattr(study, "train_model", lambda: trainings.append(1) or model)
    assert avatar_model.load_cached_model() is None and study._load_or_train_model() is model
    assert "training the avatar" in capsys.readouterr().out
    here = avatar_model.cached_model_path(TINY)
    assert study._load_or_train_model().bound == revarb.load(here).bound == model.bound
    assert len(trainings) == 1 and capsys.readouterr().out == ""
    here.write_bytes(b"cut short")
    study._load_or_train_model()
    assert len(trainings) == 2 and here != avatar_model.cached_model_path(replace(TINY, inducing=31))


def test_the_frames_are_the_mean_only_run_under_the_commanded_speed(model, avatar):
    walk_on(avatar, 9)
    avatar.set_speed(2.0)
    scene, played = walk_on(avatar, 15)[-1], avatar.history()
    np.testing.assert_array_equal(played.speeds, np.repeat([avatar.walking, 2.0], [10, 15]))
    expected = model.simulate(played.speeds[:, None], "mean", start=model.final_states[0]).mean
    np.testing.assert_allclose(played.values, expected, rtol=1e-9, atol=1e-9)
    still = cmu35.to_motion(played.values[-1:], played.channels)
    np.testing.assert_allclose(scene.joints, still.joints()[0] * still.skeleton.metres_per_unit, atol=1e-12)
    assert scene.joints[0, 0] == scene.joints[0, 2] == 0.0 and scene.time == pytest.approx(24 * avatar.dt)
    motion = played.motion()
    way = motion.root[-1, cmu35.FORWARD] * motion.skeleton.metres_per_unit
    assert scene.distance == pytest.approx(way) == pytest.approx((10 * avatar.walking + 14 * 2.0) * avatar.dt)
    counts = [len(avatar.tick(count).samples) for count in (-1, 0, 3, 99)]
    assert counts == [0, 0, 3, SAMPLED_RUNS] and len(scene.samples) == 0
    scene = avatar.tick(SAMPLED_RUNS)
    assert 0.0 < np.abs(scene.samples - scene.joints).max() < 1.0


def test_presets_repeat_and_speeds_are_limited(avatar):
    """The page's buttons are in test_live_page.py."""
    assert list(avatar.presets) == ["step", "ramp", "sine", "stop and go"]
    assert avatar.fastest > max(signal.max() for signal in avatar.presets.values())
    avatar.presets = {"short": np.array([1.0, 2.0, 3.0])}
    avatar.follow_preset("short")
    assert [scene.speed for scene in walk_on(avatar, 5)] == [1.0, 2.0, 3.0, 1.0, 2.0]
    avatar.fastest = 4.0
    for commanded, expected in ((-5.0, 0.0), (1e300, 4.0), (2, 2.0), (float("nan"), 2.0), (float("inf"), 2.0)):
        avatar.set_speed(commanded)
        assert avatar.tick().speed == expected
    with pytest.raises(revarb.InputError, match="unknown preset 'long'; known are short"):
        avatar.follow_preset("long")


def test_the_curves_are_the_last_seconds_and_the_history_is_limited(model, avatar, monkeypatch):
    avatar.set_speed(2.0)
    walk_on(avatar, 40)
    curves, played = avatar.traces(1.0), avatar.history()
    assert len(curves.time) == 30 and curves.time[-1] == pytest.approx(40 * avatar.dt)
    np.testing.assert_array_equal(curves.hip, played.values[-30:, played.channels.index(HIP)])
    np.testing.assert_array_equal(curves.speed, played.speeds[-30:])
    low, high = avatar.hip_range
    assert (curves.deviation > 0.0).all() and low < curves.hip.min() < curves.hip.max() < high
    monkeypatch.setattr(live_avatar, "HISTORY_SECONDS", 0.5)
    short = LiveAvatar(model, gaits())
    assert walk_on(short, 40)[-1].time == pytest.approx(40 * short.dt) and len(short.history().speeds) == 15


def test_the_played_motion_is_exported(avatar, tmp_path):
    avatar.set_speed(2.5)
    walk_on(avatar, 20)
    played = avatar.history()
    motion = played.motion()
    files = {file.suffix: file for file in played.export(tmp_path / "new" / "folder", "avatar")}
    assert set(files) == {".bvh", ".amc", ".asf", ".csv", ".gif"} and all(file.is_file() for file in files.values())
    _, dt, rows = read_bvh(files[".bvh"])
    assert dt == pytest.approx(avatar.dt) and len(rows) == 21
    again = read_motion(files[".amc"], read_skeleton(files[".asf"]))
    np.testing.assert_array_equal(again.frames, motion.frames)
    head, *lines = files[".csv"].read_text().splitlines()
    assert head.split(",") == ["time", "speed", *motion.skeleton.channels]
    np.testing.assert_array_equal([float(line.split(",")[1]) for line in lines], played.speeds)
    with Image.open(files[".gif"]) as film:
        assert film.n_frames == 11


def run(capsys, *arguments):
    code = main(["avatar", "--live", *map(str, arguments)])
    return code, capsys.readouterr().err


def test_what_is_missing_for_the_page_is_one_line(capsys, monkeypatch, tmp_path, model):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = f"cannot serve on 127.0.0.1, port {port}: Address already in use; choose another --port or --host"
        assert run(capsys, "--port", port) == (2, f"error: {message}\n")
    (tmp_path / "wrong.rgp").write_bytes(b"no model")
    monkeypatch.setitem(os.environ, "REVARB_DATA", str(tmp_path))
    for option, value, message in (
        ("--host", "192.0.2.1", "cannot serve on 192.0.2.1, port 0: "),
        ("--model", tmp_path / "none.rgp", "none.rgp"),
        ("--model", tmp_path / "wrong.rgp", "wrong.rgp"),
        ("--model", model.save(tmp_path / "m.rgp"), "REVARB_DATA is set, but there is no"),
    ):
        code, err = run(capsys, option, value, "--port", 0)
        assert code == 2 and err.startswith("error: ") and message in err and err.count("\n") == 1
    monkeypatch.delitem(sys.modules, "studies.paper.motion.live_page", raising=False)
    monkeypatch.setitem(sys.modules, "viser", None)
    assert run(capsys) == (2, 'error: the page needs viser; pip install "revarb[avatar]"\n')
