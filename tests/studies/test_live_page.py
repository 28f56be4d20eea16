"""The avatar's page in a real browser, and its server with and without one."""

import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

import revarb
from studies.paper.motion.live_avatar import LiveAvatar
from studies.paper.motion.live_page import LivePage
from support.avatars import gaits, trained
from support.browser import Chromium
from support.waiting import DEADLINE, wait_until

NODE = "window.__viserSceneTree?.getState()['{}']"
POSE = f"[...{NODE.format('/avatar/cylinders')}.message.props.batched_positions]"
CHARTS = "Object.values(window.__viserTestpoints?.uplots ?? {})"
CURVES = f"{CHARTS}.map((each) => each.chart.data.map((row) => [...row]))"
LABEL = "[...document.querySelectorAll('label')].find((each) => each.textContent === '{}')"
FIELD = f"document.getElementById({LABEL}.htmlFor)"
TEXT = "document.body.innerText"
SPEED = f"{FIELD.format('speed, m/s')}.parentElement.querySelector('input[inputmode]')"
ROOT = Path(__file__).parents[2]  # the studies are not installed
SMALL = (640, 480)  # fewer pixels to render without a graphics card


@contextmanager
def serve(avatar, folder):
    """Serve the page of an avatar in this process, where type annotations are checked."""
    ends = threading.Event()
    with LivePage(avatar, "127.0.0.1", 0, folder) as page:
        loop = threading.Thread(target=page.run, args=(ends.is_set,))
        loop.start()
        try:
            yield page
            assert loop.is_alive()
        finally:
            ends.set()
            loop.join()


def wait_for_motion(tab):
    """Wait for the skeleton, and for its next pose."""
    wait_until(lambda: tab.value(f"Boolean({NODE.format('/avatar/cylinders')})"))
    first = tab.value(POSE)
    wait_until(lambda: tab.value(POSE) != first)
    return np.array(tab.value(POSE)).reshape(-1, 3)


def wait_for_speed(tab, speed):
    """Wait until the curves end at this speed."""
    return wait_until(lambda: (curves := tab.value(CURVES)) and curves[0][1][-1] == pytest.approx(speed) and curves)


@pytest.mark.slow
def test_the_controls_of_the_page(browser, recorded_data, tmp_path):
    avatar = LiveAvatar(trained(), gaits())
    with serve(avatar, tmp_path / "out") as page, Chromium(browser, tmp_path / "profile", size=(1000, 700)) as process:
        tab = process.open(page.url)
        pose = wait_for_motion(tab)
        assert 1.2 < np.ptp(pose[:, 1]) < 2.0 and abs(pose[:, [0, 2]]).max() < 1.0
        wait_for_speed(tab, avatar.walking)
        check_speed_and_preset(tab, avatar)
        check_samples(tab)
        check_pause_and_reset(tab, avatar)
        check_export(tab, tmp_path / "out")
        tab.value("document.querySelector('.mantine-Notification-closeButton')?.click()")  # there is no graphics card
        check_picture(tab, Path(os.environ.get("REVARB_ARTEFACTS", tmp_path)))  # set by .ci/run, to look at it
        local = (page.url, page.url.replace("http", "ws"), "data:", "blob:")
        assert [url for url in tab.asked_for() if not url.startswith(local)] == []
        assert tab.complaints() == []


def check_speed_and_preset(tab, avatar):
    tab.pull(FIELD.format("speed, m/s"), 0.8)
    wait_until(lambda: avatar.traces(0.1).speed[-1] == pytest.approx(0.8 * avatar.fastest, abs=0.3))
    tab.type(SPEED, "3.3")
    wait_until(lambda: avatar.traces(0.1).speed[-1] == 3.3)
    _, hip = wait_for_speed(tab, 3.3)
    _, mean, upper, lower = (np.array(row[1:]) for row in hip)
    assert (upper >= mean).all() and (lower <= mean).all() and (upper - lower).max() > 0.0
    tab.choose(FIELD.format("preset"), "sine")
    wait_until(lambda: avatar.preset == "sine" and avatar.traces(0.1).speed[-1] < 3.0)
    wait_until(lambda: "m/s (sine)" in tab.value(TEXT))
    tab.type(SPEED, "2")
    wait_until(lambda: avatar.preset is None and avatar.traces(0.1).speed[-1] == 2.0)
    wait_until(lambda: tab.value(f"{FIELD.format('preset')}.value") == "by hand")


def check_samples(tab):
    visible = f"{NODE.format('/sample2/cylinders')}.visibility"
    wait_until(lambda: tab.value(visible) is True)
    assert tab.value(f"{NODE.format('/sample3/cylinders')}.visibility") is False
    for shown in (False, True):
        tab.value(f"{FIELD.format('samples')}.click()")
        wait_until(lambda shown=shown: tab.value(visible) is shown)


def check_pause_and_reset(tab, avatar):
    tab.press("Pause")
    wait_until(lambda: not avatar.playing and "paused" in tab.value(TEXT))
    tab.press("Reset")
    wait_until(lambda: len(avatar.history().speeds) == 1)
    tab.press("Play")
    wait_until(lambda: len(avatar.history().speeds) > 30)


def check_export(tab, folder):
    tab.press("Export")
    said = wait_until(lambda: re.search(r"wrote (\S+): BVH, AMC, ASF, CSV, GIF", tab.value(TEXT)))
    assert said[1].startswith(str(folder))
    files = sorted(folder.iterdir())
    assert [file.suffix for file in files] == [".amc", ".asf", ".bvh", ".csv", ".gif"]
    assert all(str(file.with_suffix("")) == said[1] and file.stat().st_size > 1000 for file in files)


def check_picture(tab, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "avatar_page.png").write_bytes(tab.picture())
    pixels = matplotlib.image.imread(folder / "avatar_page.png")[..., :3]
    scene = pixels[:, : int(0.6 * pixels.shape[1])]
    red = (scene[..., 0] > 1.5 * scene[..., 1]) & (scene[..., 0] > 1.5 * scene[..., 2])
    assert red.mean() > 0.004 and (pixels.min(axis=2) > 0.9).mean() > 0.4


@pytest.mark.slow
def test_the_server_continues_when_browsers_disconnect(browser, recorded_data, tmp_path):
    avatar = LiveAvatar(trained(), gaits())
    with (
        serve(avatar, tmp_path) as page,
        Chromium(browser, tmp_path / "one", size=SMALL) as one,
        Chromium(browser, tmp_path / "two", size=SMALL) as two,
    ):
        tab, other = one.open(page.url), two.open(page.url)
        wait_for_motion(tab)
        wait_for_motion(other)
        for speed in np.random.default_rng(0).uniform(0.0, 4.0, size=30):  # as fast as the browser can
            tab.type(SPEED, f"{speed:.2f}")
        tab.type(SPEED, "2.5")
        wait_until(lambda: other.value(f"{SPEED}.value") == "2.5")
        one.process.kill()
        wait_for_motion(other)
        other.close()
        another = two.open(page.url)
        wait_for_motion(another)
        assert another.value(f"{SPEED}.value") == "2.5"


def test_no_public_tunnel_is_opened(recorded_data, tmp_path):
    with serve(LiveAvatar(trained(), gaits()), tmp_path) as page:
        assert page._server.request_share_url() is None


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
