"""The avatar's page: its controls and its server."""

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import revarb
from studies.paper.motion.live_avatar import SAMPLED_RUNS, LiveAvatar
from studies.paper.motion.live_page import BY_HAND, SHOWN_SAMPLES, LivePage
from support.avatars import gaits, trained
from support.waiting import DEADLINE

ROOT = Path(__file__).parents[2]  # the studies are not installed


@pytest.fixture
def avatar(recorded_data):
    return LiveAvatar(trained(), gaits())


def draw_frame(page, samples=SHOWN_SAMPLES):
    page._apply_controls()
    page._draw(page._avatar.tick(samples))


def test_the_controls_move_the_avatar(avatar, tmp_path):
    """As they do in every frame."""
    with LivePage(avatar, "127.0.0.1", 0, tmp_path / "out") as page:
        assert page._server.request_share_url() is None  # no public tunnel
        page._server.get_clients = lambda: {0: None}
        frames = iter(range(5))
        page.run(lambda: next(frames, None) is None)
        assert len(avatar.history().speeds) == 6  # the start, and five frames
        for _ in range(3):
            draw_frame(page)
        shown = [body._cylinders.visible for body in page._sample_bodies]
        assert shown == [True] * SHOWN_SAMPLES + [False] * (SAMPLED_RUNS - SHOWN_SAMPLES)
        assert np.ptp(page._body._cylinders.batched_positions[:, 1]) > 1.2  # metres, upright
        page._speed.value = 3.3
        for _ in range(3):
            draw_frame(page, samples=0)
        assert avatar.traces(0.1).speed[-1] == page._speed_curve.data[1][-1] == 3.3
        assert not any(body._cylinders.visible for body in page._sample_bodies)
        page._preset.value = "sine"
        for _ in range(3):
            draw_frame(page)
        assert avatar.preset == "sine" and "m/s (sine)" in page._clock.content
        page._speed.value = 2.0  # ends the preset
        draw_frame(page)
        assert avatar.preset is None and page._preset.value == BY_HAND and avatar.traces(0.1).speed[-1] == 2.0
        page._press("Pause")
        assert not avatar.playing and avatar.tick().time == avatar.tick().time
        page._press("Reset")
        page._press("Play")
        assert avatar.playing and len(avatar.history().speeds) == 1
        page._export()
        said = re.search(r"wrote (\S+): BVH, AMC, ASF, CSV, GIF", page._exported.content)[1]
        assert {str(file.with_suffix("")) for file in (tmp_path / "out").iterdir()} == {said}


def test_ctrl_c_ends_it_without_output(recorded_data, tmp_path):
    file = trained().save(tmp_path / "m.rgp")
    command = [sys.executable, "-m", "studies", "avatar", "--live", "--model", str(file), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, Path(revarb.__file__).parents[1])))}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path, "env": environment}
    with subprocess.Popen(command, **pipes) as process:
        said = process.stdout.readline()
        url = re.fullmatch(r"the avatar is at (http://127\.0\.0\.1:\d+) \(Ctrl-C ends it\)\n", said)[1]
        with urllib.request.urlopen(url) as page:
            assert page.status == 200 and b"<html" in page.read(2000).lower()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=DEADLINE)
    assert (process.returncode, out, err) == (0, "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["m.rgp"]
