"""The page that plays motions: self-contained, escaped, and a real browser plays it."""

import json
import re
from pathlib import Path

import numpy as np

from studies.paper.motion import player_page
from studies.paper.motion.player_page import Clip, make_motion_page
from studies.tables import Grid
from support.bodies import BODY, DT, STRIDE_FRAMES, stride
from support.browser import open_page

HOSTILE = '</script><script>alert("1")</script><!-- & '


def clip(name="35_05 walk", note="RMSE 0.81", scored_from=10, frames=STRIDE_FRAMES):
    return Clip(name, stride(frames=frames), stride(20.0, frames), DT, scored_from, note)


def page_of(*clips, **others):
    return make_motion_page("Motion", "It walks.", BODY, clips, **others)


def embedded(page):
    return json.loads(re.search(r'<script type="application/json" id="motions">(.*?)</script>', page, re.S)[1])


def test_the_page_has_all_frames():
    motions = embedded(page_of(clip(), clip("35_21 run", frames=12)))
    assert [len(each["measured"]) for each in motions["clips"]] == [30, 12]
    for each, truth in zip(motions["clips"], (stride(), stride(frames=12)), strict=True):
        metres = np.array(each["measured"]).reshape(truth.shape) / 1000
        np.testing.assert_allclose(metres, truth * BODY.metres_per_unit, rtol=0, atol=0.0005)
        assert each["simulated"] != each["measured"] and each["scoredFrom"] == 10
    assert sorted(map(tuple, motions["bones"])) == [(1, 0, "left"), (2, 0, "right"), (3, 0, "middle"), (4, 3, "middle")]


def test_the_page_is_complete_and_self_contained():
    grid = Grid("All <motions>", ("model", "RMSE"), [["Mean", "1.0"], ["A", "0.5"]], best=1)
    page = page_of(clip(), meta={"made": "now"}, grids=[grid])
    ids = set(re.findall(r'\bid="?(\w+)', page))
    player = Path(player_page.__file__).with_name("player.js").read_text(encoding="utf-8")
    assert set(re.findall(r'byId\("(\w+)"\)', player)) == ids
    for text in ("¼×", "½×", "1×", "35_05 walk", "It walks.", "now", "All &lt;motions&gt;"):
        assert f">{text}<" in page, text
    assert page.index("</canvas>") < page.index("<table>") and "<tr class=best><td>A</td>" in page
    assert not re.search(r"https?:|//\w+\.|@import|url\(|\bfetch\(|XMLHttp|\bimport\b|<[^>]*\b(src|href)=", page)


def test_names_are_escaped():
    page = make_motion_page(HOSTILE, HOSTILE, BODY, [clip(HOSTILE, note=HOSTILE)], meta={HOSTILE: HOSTILE})
    assert page.count("<script") == page.count("</script>") == 2 and "<!-- &" not in page
    assert embedded(page)["clips"][0]["note"] == HOSTILE


def dom_after(browser, folder, actions, *options):
    """The page's texts by id, as a browser has them after these actions, and errors of its console."""
    helpers = """<script>
const key = (name) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
const set = (id, value, kind) => {
  Object.assign(document.getElementById(id), { value }).dispatchEvent(new Event(kind, { bubbles: true }));
};
const picture = (id) => document.getElementById(id).toDataURL();
const say = (textContent) => {
  document.body.append(Object.assign(document.createElement("p"), { id: "said", textContent }));
};
"""
    page = page_of(clip(), clip("35_21 run", "RMSE 1.5", scored_from=12, frames=12))
    (folder / "page.html").write_text(page.replace("</body>", f"{helpers}{actions}</script></body>"))
    done = open_page(browser, folder / "page.html", folder, "--dump-dom", *options)
    assert done.returncode == 0 and "CONSOLE" not in done.stderr, done.stderr
    return dict(re.findall(r'id="(\w+)"[^>]*>([^<]*)<', done.stdout))


def test_it_plays_in_a_loop(browser, tmp_path):
    """With a simulated clock: 12 frames at half speed, a screen refresh every 41 ms."""
    actions = """let next = null;
window.requestAnimationFrame = (tick) => { next = tick; return 0; };
set("clip", "1", "change"); set("speed", "0.5", "change"); key(" "); key(" ");
const seen = [];
for (let now = 0; now <= 902; now += 41) { next(now); seen.push(document.getElementById("time").value); }
say(seen.join(" "));"""
    expected = [int(0.5 * 0.041 * k / DT) % 12 for k in range(23)]
    assert dom_after(browser, tmp_path, actions)["said"] == " ".join(map(str, expected))
    assert expected[-4:] == [11, 0, 0, 1]


def test_keys_slider_and_the_list_of_motions(browser, tmp_path):
    assert dom_after(browser, tmp_path, "")["play"] == "Pause"
    texts = dom_after(browser, tmp_path, "", "--force-prefers-reduced-motion")  # starts paused
    assert texts["play"] == "Play" and texts["clock"] == "frame 1 of 30 · 0.00 s · not scored yet"
    assert texts["note"] == "RMSE 0.81" and texts["start"] == "scored from frame 11 (0.33 s)"
    texts = dom_after(browser, tmp_path, "set('time', 9, 'input'); key('ArrowRight')")
    assert texts["clock"] == "frame 11 of 30 · 0.33 s · scored" and texts["play"] == "Play"
    assert dom_after(browser, tmp_path, "set('time', 0, 'input'); key('ArrowLeft')")["clock"].startswith("frame 30 of")
    texts = dom_after(browser, tmp_path, "key(' '); set('clip', '1', 'change')")
    assert texts["note"] == "RMSE 1.5" and texts["start"] == "not scored" and "of 12" in texts["clock"]


def test_dragging_turns_both_and_the_overlay_is_behind_the_simulated(browser, tmp_path):
    actions = """key(" ");
const both = () => [picture("measured"), picture("simulated")];
const differ = (one, other) => one.map((each, k) => each !== other[k]).join(" ");
const canvas = document.getElementById("measured");
const pointer = (kind, clientX) => canvas.dispatchEvent(new PointerEvent(kind, { clientX, pointerId: 1 }));
canvas.setPointerCapture = () => {};
const before = both();
pointer("pointermove", 50); const untouched = both();
pointer("pointerdown", 50); pointer("pointermove", 90); pointer("pointerup", 90); const turned = both();
document.getElementById("overlay").click(); const overlaid = both();
say([[before, untouched], [untouched, turned], [turned, overlaid]].map((pair) => differ(...pair)).join(", "));"""
    assert dom_after(browser, tmp_path, actions)["said"] == "false false, true true, false true"
