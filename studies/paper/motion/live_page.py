"""The avatar's page: a 3D scene and its controls, served by viser. Nothing is loaded from other servers.

The avatar stays above the origin and the ground moves below it, so that it stays in view of every camera in every tab.
The controls are read once per frame, so that dragging a slider adds no load.
"""

import io
import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import datetime
from html import escape
from pathlib import Path

import numpy as np
import trimesh
import viser
from jaxtyping import Float64
from viser import uplot

from revarb import InputError
from studies.output import GREY, MEASURED, MODEL
from studies.paper.motion.live_avatar import FILM_SECONDS, HISTORY_SECONDS, HORIZON, SAMPLED_RUNS, LiveAvatar, Scene
from studies.paper.motion.shape import Shape, Solids, to_rgb_bytes

BY_HAND = "by hand"
PLAY, PAUSE, RESET = "Play", "Pause", "Reset"
SHOWN_SAMPLES = 3
SAMPLE_OPACITY = 0.3
GRID = 1.0  # metres
CURVE_SECONDS = 8.0
CURVES_EVERY = 3  # frames: ten updates per second are enough for the curves
MAX_DELAY = 0.5  # seconds: after a longer delay the missed frames are dropped
IDLE = 0.1  # seconds between checks for clients
PANEL_WIDTH = 360  # pixels
BRAND = "#3d4d63"

Curves = tuple[Float64[np.ndarray, " T"], ...]


def check_address(host: str, port: int) -> None:
    """Check that the address can be listened on; viser would silently take another port, or block."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        socket.create_server(address, family=family).close()
    except (OSError, UnicodeError) as error:
        reason = str(getattr(error, "strerror", None) or error).partition(" (")[0]
        raise InputError(f"cannot serve on {host}, port {port}: {reason}; choose another --port or --host") from None


class LivePage:
    """The avatar in the browser: a context manager that closes the server at its end.

    Parameters
    ----------
    avatar : LiveAvatar
        The avatar to show and control.
    host, port : str, int
        Address to listen on; port 0 takes any that is free.
    folder : pathlib.Path
        Where the Export button writes to.
    """

    def __init__(self, avatar: LiveAvatar, host: str, port: int, folder: Path):
        check_address(host, port)
        self._avatar, self._folder = avatar, folder
        self._exporting, self._since_curves = threading.Lock(), 0
        self._server = _serve(host, port)
        self._build_scene()
        self._build_controls()

    @property
    def url(self) -> str:
        """Address of the page."""
        host = self._server.get_host()
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self._server.get_port()}"

    def __enter__(self) -> "LivePage":
        return self

    def __exit__(self, *_: object) -> None:
        with redirect_stdout(io.StringIO()):
            self._server.stop()

    def run(self, until: Callable[[], bool]) -> None:
        """Run in real time. A late frame is computed but not drawn; without clients the avatar pauses."""
        due = time.monotonic()
        while not until():
            if not self._server.get_clients():
                time.sleep(IDLE)
                due = time.monotonic()
                continue
            time.sleep(max(0.0, due - time.monotonic()))
            self._apply_controls()
            scene = self._avatar.tick(self._count.value if self._samples.value else 0)
            due += self._avatar.dt
            late = time.monotonic() - due
            if late < self._avatar.dt:
                self._draw(scene)
            if late > MAX_DELAY:
                due = time.monotonic()

    # --- building ----------------------------------------------------------------------------------------------------

    def _build_scene(self) -> None:
        scene, body = self._server.scene, self._avatar.body.skeleton
        scene.set_up_direction("+y")
        scene.configure_environment_map(environment_intensity=0.6)  # more would make the colours pale
        self._ground = scene.add_grid(
            "/ground", 40.0, 40.0, plane="xz", cell_size=GRID / 2, section_size=GRID, fade_from="origin",
            fade_distance=9.0, cell_color=to_rgb_bytes("#dddddd"), section_color=to_rgb_bytes("#b8b8b8"),
            shadow_opacity=0.25,
        )  # fmt: skip
        self._body = _BodyMesh(scene, "/avatar", Shape.from_skeleton(body, MODEL))
        shape = Shape.from_skeleton(body, GREY)
        self._sample_bodies = [_BodyMesh(scene, f"/sample{k}", shape, SAMPLE_OPACITY) for k in range(SAMPLED_RUNS)]
        camera = self._server.initial_camera  # from the subject's right, a little from the front
        camera.position, camera.look_at, camera.fov = (-3.1, 1.5, 1.6), (0.0, 0.85, 0.0), np.radians(40.0)

    def _build_controls(self) -> None:
        gui, avatar = self._server.gui, self._avatar
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=to_rgb_bytes(BRAND))
        gui.main_panel.dock_right()
        gui.main_panel.set_width(PANEL_WIDTH)
        marks = ((0.0, "0"), (avatar.walking, "walk"), (avatar.running, "run"), (avatar.fastest, f"{avatar.fastest:g}"))
        self._last_speed = round(avatar.walking, 2)
        self._speed = gui.add_slider("speed, m/s", 0.0, avatar.fastest, 0.01, self._last_speed, marks=marks)
        self._preset = gui.add_dropdown("preset", (BY_HAND, *avatar.presets), hint="Moving the slider ends a preset.")
        gui.add_button_group("motion", (PLAY, PAUSE, RESET)).on_click(lambda event: self._press(event.target.value))
        hint = f"Samples of the pose, drawn from the model; reset to its mean every {HORIZON * avatar.dt:g} s."
        self._samples = gui.add_checkbox("samples", True, hint=hint)
        self._count = gui.add_slider("samples shown", 1, SAMPLED_RUNS, 1, SHOWN_SAMPLES)
        trained = f"Trained at about {avatar.walking:.1f} and {avatar.running:.1f} m/s; other speeds are extrapolated."
        gui.add_html(_note(trained))
        self._build_curves()
        self._clock = gui.add_html("")
        minutes = f"{HISTORY_SECONDS / 60:g} minutes at most"
        hint = f"BVH, AMC and CSV of everything since the last reset ({minutes}), a GIF of the end."
        gui.add_button("Export", icon=viser.Icon.DOWNLOAD, hint=hint).on_click(lambda _: self._export())
        self._exported = gui.add_html("")

    def _build_curves(self) -> None:
        gui, avatar, (speed, hip) = self._server.gui, self._avatar, self._curves()
        title = f"left hip, degrees, ± 2 std of {SAMPLED_RUNS} sampled runs"
        self._speed_curve = _add_curve(gui, speed, "speed, m/s", MEASURED, (0.0, avatar.fastest), 120)
        self._hip_curve = _add_curve(gui, hip, title, MODEL, avatar.hip_range, 160)

    # --- per frame ---------------------------------------------------------------------------------------------------

    def _apply_controls(self) -> None:
        """Pass changes of the controls to the avatar.

        The slider is not moved by a preset: an update from the server would overwrite what a user is typing.
        """
        preset = self._preset.value if self._preset.value in self._avatar.presets else None
        if self._speed.value != self._last_speed:
            self._last_speed = self._speed.value
            self._avatar.set_speed(self._last_speed)
            self._preset.value = BY_HAND
        elif preset != self._avatar.preset:
            if preset is None:
                self._avatar.set_speed(self._last_speed)
            else:
                self._avatar.follow_preset(preset)

    def _draw(self, scene: Scene) -> None:
        with self._server.atomic():
            self._body.show(scene.joints)
            for body, joints in zip(self._sample_bodies, scene.samples, strict=False):
                body.show(joints)
            for body in self._sample_bodies[len(scene.samples) :]:
                body.hide()
            self._ground.position = (0.0, 0.0, -(scene.distance % GRID))
        self._since_curves += 1
        if self._since_curves >= CURVES_EVERY:
            self._since_curves = 0
            self._draw_curves(scene)

    def _draw_curves(self, scene: Scene) -> None:
        self._speed_curve.data, self._hip_curve.data = self._curves()
        state = "" if self._avatar.playing else " · paused"
        source = self._avatar.preset or BY_HAND
        values = f"{scene.time:.1f} s · {scene.speed:.2f} m/s ({source}) · {scene.distance:.1f} m"
        self._clock.content = _note(f"{values}{state}")

    def _curves(self) -> tuple[Curves, Curves]:
        """Speed over time, and the angle of the hip with the edges of its band."""
        traces = self._avatar.traces(CURVE_SECONDS)
        rows = (traces.speed, traces.hip, traces.hip + 2.0 * traces.deviation, traces.hip - 2.0 * traces.deviation)
        # A first point without a value keeps the length of the time axis constant.
        speed, *hip = (np.concatenate([[np.nan], row]) for row in rows)
        seconds = np.concatenate([[traces.time[-1] - CURVE_SECONDS], traces.time])
        return (seconds, speed), (seconds, *hip)

    # --- buttons: called in viser's threads --------------------------------------------------------------------------

    def _press(self, button: str) -> None:
        if button == RESET:
            self._avatar.reset()
        else:
            self._avatar.play(button == PLAY)

    def _export(self) -> None:
        if not self._exporting.acquire(blocking=False):
            return
        try:
            self._exported.content = _note("writing …")
            name = f"avatar_{datetime.now():%Y%m%d-%H%M%S}"
            files = self._avatar.history().export(self._folder, name)
            endings = ", ".join(file.suffix[1:].upper() for file in files)
            where = self._folder.resolve() / name
            self._exported.content = _note(f"wrote {where}: {endings}; the film shows the last {FILM_SECONDS:g} s")
        except (InputError, OSError) as error:
            self._exported.content = _note(f"not written: {error}")
        finally:
            self._exporting.release()


class _BodyMesh:
    """Meshes of a body in the scene."""

    def __init__(self, scene: viser.SceneApi, name: str, shape: Shape, opacity: float | None = None):
        self._shape = shape
        cylinder, sphere = trimesh.creation.cylinder(1.0, 1.0, sections=12), trimesh.creation.icosphere(subdivisions=2)
        self._cylinders = _add_meshes(scene, f"{name}/cylinders", cylinder, shape.cylinders, opacity)
        self._spheres = _add_meshes(scene, f"{name}/spheres", sphere, shape.spheres, opacity)

    def show(self, joints: Float64[np.ndarray, "J 3"]) -> None:
        self._cylinders.batched_positions = self._shape.cylinders.centres(joints)
        self._cylinders.batched_wxyzs = self._shape.cylinders.quaternions(joints)
        self._spheres.batched_positions = self._shape.spheres.centres(joints)
        self._cylinders.visible = self._spheres.visible = True

    def hide(self) -> None:
        self._cylinders.visible = self._spheres.visible = False


def _add_meshes(
    scene: viser.SceneApi, name: str, mesh: trimesh.Trimesh, solids: Solids, opacity: float | None
) -> viser.BatchedMeshHandle:
    positions = np.zeros((len(solids.sizes), 3))
    quaternions = np.tile([1.0, 0.0, 0.0, 0.0], (len(solids.sizes), 1))
    return scene.add_batched_meshes_simple(
        name, mesh.vertices, mesh.faces, quaternions, positions,
        batched_scales=solids.sizes, batched_colors=solids.colours,
        opacity=opacity, cast_shadow=opacity is None, receive_shadow=False, visible=False, lod="off",
    )  # fmt: skip


class _LocalServer(viser.ViserServer):
    """viser's server without its public sharing: a page cannot request a tunnel."""

    def request_share_url(self, verbose: bool = True) -> str | None:
        return None


def _serve(host: str, port: int) -> viser.ViserServer:
    # Connection errors of browsers and viser's banner do not belong in the terminal.
    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    with redirect_stdout(io.StringIO()):
        server = _LocalServer(host, port, label="Avatar", verbose=False)
        if port not in (0, server.get_port()):
            server.stop()
            raise InputError(f"port {port} has just been taken by another program; choose another --port")
    return server


def _add_curve(
    gui: viser.GuiApi, data: Curves, title: str, colour: str, limits: tuple[float, float], height: int
) -> viser.GuiUplotHandle:
    """Add a curve over time; two further rows of data are the edges of its band."""
    line = uplot.Series(stroke=colour, width=2, points={"show": False})
    edges = [uplot.Series(width=0, points={"show": False})] * (len(data) - 2)
    bands = (uplot.Band(series=(2, 3), fill=f"{colour}55"),) if edges else None
    scales = {"x": uplot.Scale(time=False), "y": uplot.Scale(range=limits)}
    return gui.add_uplot(
        data, (uplot.Series(), line, *edges), title=title, bands=bands, scales=scales, height=height,
        legend={"show": False}, cursor={"show": False}, padding=(8, 8, 0, 0),
    )  # fmt: skip


def _note(text: str) -> str:
    return f'<p style="margin: 0.2em 0.75em; font-size: 0.85em; overflow-wrap: anywhere">{escape(text)}</p>'
