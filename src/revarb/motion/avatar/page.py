"""The page: a scene in three dimensions and its controls, served by viser. Nothing is fetched from elsewhere.

The avatar stays above the origin and the ground passes below it: whoever turns the camera, in however many tabs, keeps
it in view. What the controls say is read once per frame, so that a slider that is torn about costs no more than one
that rests.
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

from revarb.errors import InputError
from revarb.motion.avatar.export import FILM_SECONDS, export
from revarb.motion.avatar.player import GHOSTS, HORIZON, REMEMBERED, Player, Scene
from revarb.motion.avatar.shape import Shape, Solids, rgb
from revarb.runtime.figure_style import MEASURED, MODEL, QUIET

BY_HAND = "by hand"


PLAY, PAUSE, RESET = "Play", "Pause", "Reset"


SHOWN_GHOSTS = 3


GHOST_OPACITY = 0.3


GRID = 1.0  # metres


SEEN = 8.0  # seconds of the curves


CURVES_EVERY = 3  # frames: ten times a second is smooth enough for a curve


LOST = 0.5  # seconds: who is so late does not catch up but goes on from now


IDLE = 0.1  # seconds between two looks whether anybody watches


PANEL_WIDTH = 360  # pixels


BRAND = "#3d4d63"


Curves = tuple[Float64[np.ndarray, " T"], ...]


def check_address(host: str, port: int) -> None:
    """Refuse an address that cannot be listened on; viser would take another port, or wait for ever."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        socket.create_server(address, family=family).close()
    except (OSError, UnicodeError) as error:
        reason = str(getattr(error, "strerror", None) or error).partition(" (")[0]
        raise InputError(f"cannot serve on {host}, port {port}: {reason}; choose another --port or --host") from None


class Page:
    """A player in the browser. Leaving the `with` block closes the server; tabs may come and go before."""

    def __init__(self, player: Player, host: str, port: int, folder: Path):
        check_address(host, port)
        self._player, self._folder = player, folder
        self._exporting, self._since_curves = threading.Lock(), 0
        self._server = _serve(host, port)
        self._build_scene()
        self._build_controls()

    @property
    def url(self) -> str:
        """Where the page is."""
        host = self._server.get_host()
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self._server.get_port()}"

    def __enter__(self) -> "Page":
        return self

    def __exit__(self, *_: object) -> None:
        with redirect_stdout(io.StringIO()):
            self._server.stop()

    def run(self, until: Callable[[], bool]) -> None:
        """Play in real time. A late frame is computed but not drawn; while nobody watches, the avatar waits."""
        due = time.monotonic()
        while not until():
            if not self._server.get_clients():
                time.sleep(IDLE)
                due = time.monotonic()
                continue
            time.sleep(max(0.0, due - time.monotonic()))
            self._obey()
            scene = self._player.tick(self._count.value if self._ghosts.value else 0)
            due += self._player.dt
            late = time.monotonic() - due
            if late < self._player.dt:
                self._draw(scene)
            if late > LOST:
                due = time.monotonic()

    # --- building ----------------------------------------------------------------------------------------------------

    def _build_scene(self) -> None:
        scene, body = self._server.scene, self._player.body.skeleton
        scene.set_up_direction("+y")
        scene.configure_environment_map(environment_intensity=0.6)  # more would bleach the colours
        self._ground = scene.add_grid(
            "/ground", 40.0, 40.0, plane="xz", cell_size=GRID / 2, section_size=GRID, fade_from="origin",
            fade_distance=9.0, cell_color=rgb("#dddddd"), section_color=rgb("#b8b8b8"), shadow_opacity=0.25,
        )  # fmt: skip
        self._figure = _Figure(scene, "/avatar", Shape.of(body, MODEL))
        shape = Shape.of(body, QUIET)
        self._ghost_figures = [_Figure(scene, f"/ghost{k}", shape, GHOST_OPACITY) for k in range(GHOSTS)]
        camera = self._server.initial_camera  # from the subject's right, a little from the front
        camera.position, camera.look_at, camera.fov = (-3.1, 1.5, 1.6), (0.0, 0.85, 0.0), np.radians(40.0)

    def _build_controls(self) -> None:
        gui, player = self._server.gui, self._player
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=rgb(BRAND))
        gui.main_panel.dock_right()
        gui.main_panel.set_width(PANEL_WIDTH)
        marks = ((0.0, "0"), (player.walking, "walk"), (player.running, "run"), (player.fastest, f"{player.fastest:g}"))
        self._told = round(player.walking, 2)
        self._speed = gui.add_slider("speed, m/s", 0.0, player.fastest, 0.01, self._told, marks=marks)
        self._preset = gui.add_dropdown("preset", (BY_HAND, *player.presets), hint="Moving the slider ends a preset.")
        gui.add_button_group("motion", (PLAY, PAUSE, RESET)).on_click(lambda event: self._press(event.target.value))
        sampled = f"Samples of where the avatar could be by now; they begin anew every {HORIZON * player.dt:g} s."
        self._ghosts = gui.add_checkbox("ghosts", True, hint=sampled)
        self._count = gui.add_slider("ghosts shown", 1, GHOSTS, 1, SHOWN_GHOSTS)
        known = f"Learned at about {player.walking:.1f} and {player.running:.1f} m/s; other speeds are the model's own."
        gui.add_html(_note(known))
        self._build_curves()
        self._clock = gui.add_html("")
        hint = f"BVH, AMC and CSV of all since the last reset ({REMEMBERED / 60:g} minutes at most), a GIF of the end."
        gui.add_button("Export", icon=viser.Icon.DOWNLOAD, hint=hint).on_click(lambda _: self._export())
        self._exported = gui.add_html("")

    def _build_curves(self) -> None:
        gui, player, (speed, hip) = self._server.gui, self._player, self._curves()
        title = f"left hip, degrees, with the spread of {GHOSTS} ghosts"
        self._speed_curve = _add_curve(gui, speed, "speed, m/s", MEASURED, (0.0, player.fastest), 120)
        self._hip_curve = _add_curve(gui, hip, title, MODEL, player.hip_range, 160)

    # --- per frame ---------------------------------------------------------------------------------------------------

    def _obey(self) -> None:
        """Tell the player what the controls say, where that is new.

        A preset leaves the slider alone: what is sent to a browser while its user types would undo his typing.
        """
        preset = self._preset.value if self._preset.value in self._player.presets else None
        if self._speed.value != self._told:
            self._told = self._speed.value
            self._player.steer(self._told)
            self._preset.value = BY_HAND
        elif preset != self._player.preset:
            if preset is None:
                self._player.steer(self._told)
            else:
                self._player.follow(preset)

    def _draw(self, scene: Scene) -> None:
        with self._server.atomic():
            self._figure.show(scene.joints)
            for figure, joints in zip(self._ghost_figures, scene.ghosts, strict=False):
                figure.show(joints)
            for figure in self._ghost_figures[len(scene.ghosts) :]:
                figure.hide()
            self._ground.position = (0.0, 0.0, -(scene.distance % GRID))
        self._since_curves += 1
        if self._since_curves >= CURVES_EVERY:
            self._since_curves = 0
            self._draw_curves(scene)

    def _draw_curves(self, scene: Scene) -> None:
        self._speed_curve.data, self._hip_curve.data = self._curves()
        state = "" if self._player.playing else " · paused"
        told = self._player.preset or BY_HAND
        figures = f"{scene.time:.1f} s · {scene.speed:.2f} m/s ({told}) · {scene.distance:.1f} m"
        self._clock.content = _note(f"{figures}{state}")

    def _curves(self) -> tuple[Curves, Curves]:
        """The speed over time, and the hip's angle with the edges of its band."""
        seen = self._player.traces(SEEN)
        rows = (seen.speed, seen.hip, seen.hip + 2.0 * seen.deviation, seen.hip - 2.0 * seen.deviation)
        # A point without a value keeps the axis of time as long as it is from the beginning.
        speed, *hip = (np.concatenate([[np.nan], row]) for row in rows)
        seconds = np.concatenate([[seen.time[-1] - SEEN], seen.time])
        return (seconds, speed), (seconds, *hip)

    # --- buttons: in threads of viser's ------------------------------------------------------------------------------

    def _press(self, button: str) -> None:
        if button == RESET:
            self._player.reset()
        else:
            self._player.play(button == PLAY)

    def _export(self) -> None:
        if not self._exporting.acquire(blocking=False):
            return
        try:
            self._exported.content = _note("writing …")
            name = f"avatar_{datetime.now():%Y%m%d-%H%M%S}"
            files = export(self._player.history(), self._folder, name)
            endings = ", ".join(file.suffix[1:].upper() for file in files)
            where = self._folder.resolve() / name
            self._exported.content = _note(f"wrote {where}: {endings}; the film is its last {FILM_SECONDS:g} s at most")
        except (InputError, OSError) as error:
            self._exported.content = _note(f"not written: {error}")
        finally:
            self._exporting.release()


class _Figure:
    """A body in the scene."""

    def __init__(self, scene: viser.SceneApi, name: str, shape: Shape, opacity: float | None = None):
        self._shape = shape
        stick, ball = trimesh.creation.cylinder(1.0, 1.0, sections=12), trimesh.creation.icosphere(subdivisions=2)
        self._sticks = _add(scene, f"{name}/sticks", stick, shape.sticks, opacity)
        self._balls = _add(scene, f"{name}/balls", ball, shape.balls, opacity)

    def show(self, joints: Float64[np.ndarray, "J 3"]) -> None:
        self._sticks.batched_positions = self._shape.sticks.middles(joints)
        self._sticks.batched_wxyzs = self._shape.sticks.turns(joints)
        self._balls.batched_positions = self._shape.balls.middles(joints)
        self._sticks.visible = self._balls.visible = True

    def hide(self) -> None:
        self._sticks.visible = self._balls.visible = False


def _add(
    scene: viser.SceneApi, name: str, mesh: trimesh.Trimesh, solids: Solids, opacity: float | None
) -> viser.BatchedMeshHandle:
    unmoved = np.zeros((len(solids.sizes), 3))
    unturned = np.tile([1.0, 0.0, 0.0, 0.0], (len(solids.sizes), 1))
    return scene.add_batched_meshes_simple(
        name, mesh.vertices, mesh.faces, unturned, unmoved, batched_scales=solids.sizes, batched_colors=solids.colours,
        opacity=opacity, cast_shadow=opacity is None, receive_shadow=False, visible=False, lod="off",
    )  # fmt: skip


class _LocalServer(viser.ViserServer):
    """viser's server, but that no page can ask it for a tunnel to the public."""

    def request_share_url(self, verbose: bool = True) -> str | None:
        return None


def _serve(host: str, port: int) -> viser.ViserServer:
    # What goes wrong between a browser and the server is no news for the terminal, and neither is viser's greeting.
    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    with redirect_stdout(io.StringIO()):
        server = _LocalServer(host, port, label="Avatar", verbose=False)
        if port not in (0, server.get_port()):
            server.stop()
            raise InputError(f"port {port} was taken by another program just now; choose another --port")
    return server


def _add_curve(
    gui: viser.GuiApi, data: Curves, title: str, colour: str, limits: tuple[float, float], height: int
) -> viser.GuiUplotHandle:
    """A curve over time; two further rows of data are the edges of a band."""
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
