"""Live simulation of the avatar, frame by frame: speed commands in, poses, their history and its files out."""

import math
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb import FittedRGP, InputError, Live
from studies.output import make_folder, write_file
from studies.paper.motion import cmu35
from studies.paper.motion.avatar_model import HIP, Gaits, make_speed_signals
from studies.paper.motion.film import render_film
from studies.paper.motion.kinematics import Motion, Skeleton
from studies.paper.motion.motion_files import write_bvh, write_motion, write_skeleton

SAMPLED_RUNS = 12  # sampled runs, whether shown or not: the band of the hip is computed from them
HORIZON = 30  # frames after which the sampled runs are reset to the mean-only run
HISTORY_SECONDS = 600.0
FILM_SECONDS = 20.0  # a film of the whole history would take minutes to render
SPEED_MARGIN = 1.1  # maximum of the slider, relative to the fastest training run


@dataclass(frozen=True, eq=False)
class Body:
    """The subject's skeleton, read once, for converting single poses (`cmu35.to_motion` reads the file every time).

    Attributes
    ----------
    skeleton : Skeleton
        The subject's skeleton.
    constants : array [C]
        A frame with the values of the channels that the model does not have.
    columns : tuple of int
        Columns of a frame to which the model's outputs belong.
    """

    skeleton: Skeleton
    constants: Float64[np.ndarray, " C"]
    columns: tuple[int, ...]

    @staticmethod
    def from_channels(channels: Sequence[str]) -> "Body":
        """Make the body for a model with these outputs; raises InputError unless they define a pose."""
        rest = cmu35.to_motion(np.zeros((1, len(channels))), channels)
        columns = tuple(rest.skeleton.channels.index(name) for name in channels)
        return Body(rest.skeleton, rest.frames[0], columns)

    def joints(self, values: Float64[np.ndarray, "N Dy"]) -> Float64[np.ndarray, "N J 3"]:
        """Joint positions in metres, one pose per row; the root does not move along the ground."""
        frames = np.tile(self.constants, (len(values), 1))
        frames[:, self.columns] = values
        return Motion(self.skeleton, frames).joints() * self.skeleton.metres_per_unit


class Scene(NamedTuple):
    """The current frame: positions in metres, y up, the root above the origin, walking along z."""

    time: float
    speed: float
    distance: float
    joints: Float64[np.ndarray, "J 3"]
    samples: Float64[np.ndarray, "K J 3"]


class Traces(NamedTuple):
    """Speed and angle of the left hip over the time since the last reset.

    `deviation` is the root mean square deviation of the sampled runs from the mean-only run.
    """

    time: Float64[np.ndarray, " T"]
    speed: Float64[np.ndarray, " T"]
    hip: Float64[np.ndarray, " T"]
    deviation: Float64[np.ndarray, " T"]


class Recording(NamedTuple):
    """Commanded speeds and model outputs, frame by frame."""

    speeds: Float64[np.ndarray, " T"]
    values: Float64[np.ndarray, "T Dy"]
    channels: tuple[str, ...]
    dt: float

    def motion(self) -> Motion:
        """The motion, with the root moving forward at the commanded speeds."""
        root = np.zeros((len(self.values), 3))
        metres = np.concatenate([[0.0], np.cumsum(self.speeds[:-1])]) * self.dt
        root[:, cmu35.FORWARD] = metres / cmu35.load_skeleton().metres_per_unit
        return cmu35.to_motion(self.values, self.channels, root)

    def export(
        self, folder: Path, name: str, film_seconds: float = FILM_SECONDS, colours: Sequence[str] | None = None
    ) -> list[Path]:
        """Write it as BVH, AMC with its skeleton (ASF), CSV and, its last seconds only, as a film (GIF).

        `colours` has one per frame of the motion. Returns the files that were written.
        """
        motion, target = self.motion(), make_folder(folder)
        skeleton, last = motion.skeleton, slice(-round(film_seconds / self.dt), None)
        film_colours = None if colours is None else colours[last]
        film = render_film(motion.joints()[last], skeleton, self.dt, "avatar", film_colours)
        rows = np.column_stack([self.dt * np.arange(len(self.speeds)), self.speeds, motion.frames])
        lines = [",".join(["time", "speed", *skeleton.channels]), *(",".join(map(repr, row)) for row in rows.tolist())]
        return [
            write_bvh(target / f"{name}.bvh", motion, self.dt),
            write_motion(target / f"{name}.amc", motion),
            write_skeleton(target / f"{name}.asf", skeleton),
            write_file(target / f"{name}.csv", "\n".join([*lines, ""]).encode()),
            write_file(target / f"{name}.gif", film),
        ]


class _Step(NamedTuple):
    speed: float
    values: Float64[np.ndarray, " Dy"]
    deviation: float


class LiveAvatar:
    """A live run whose speed is set by hand or follows a preset. All methods are thread-safe.

    Parameters
    ----------
    model : FittedRGP
        A model from speed to posture (`check_model`).
    gaits : Gaits
        Records of walking and running, for the presets and the range of speeds.
    """

    def __init__(self, model: FittedRGP, gaits: Gaits):
        self.dt = model.dt
        self.walking, self.running = gaits.walking_speed, gaits.running_speed
        self.fastest = math.ceil(10.0 * SPEED_MARGIN * max(record.u.max() for record in gaits.runs)) / 10.0
        self.presets = make_speed_signals(gaits, model.dt)
        self.body = Body.from_channels(model.output_names)
        self._channels, self._hip = model.output_names, model.output_names.index(HIP)
        middle, width = model.scaling.y_mean[self._hip], 2.6 * model.scaling.y_std[self._hip]
        self.hip_range = (float(middle - width), float(middle + width))
        self._live = Live(model, start=model.final_states[0], samples=SAMPLED_RUNS, horizon=HORIZON)
        self._past: deque[_Step] = deque(maxlen=round(HISTORY_SECONDS / model.dt))
        self._lock = threading.Lock()
        self._by_hand, self._preset, self._playing = self.walking, None, True
        self.reset()

    @property
    def playing(self) -> bool:
        """Whether `tick` advances."""
        return self._playing

    @property
    def preset(self) -> str | None:
        """Name of the preset in use; None where the speed is set by hand."""
        return self._preset

    def play(self, on: bool = True) -> None:
        """Continue, or pause."""
        self._playing = on

    def set_speed(self, speed: float) -> None:
        """Set the speed by hand, clipped to 0 … `fastest`; ends a preset. A speed that is not finite is ignored."""
        if math.isfinite(speed):
            with self._lock:
                self._by_hand, self._preset = min(max(float(speed), 0.0), self.fastest), None

    def follow_preset(self, preset: str) -> None:
        """Take the speed from a preset, from its beginning and in a loop."""
        if preset not in self.presets:
            raise InputError(f"unknown preset {preset!r}; known are {', '.join(self.presets)}")
        with self._lock:
            self._preset, self._preset_frame = preset, 0

    def reset(self) -> None:
        """Go back to the first frame and clear the history; a preset starts again."""
        with self._lock:
            self._live.reset()
            self._past.clear()
            self._frames, self._distance, self._preset_frame = 0, 0.0, 0
            self._advance()

    def tick(self, samples: int = 0) -> Scene:
        """Advance by one frame unless paused, and return it with the given number of sampled runs."""
        with self._lock:
            if self._playing:
                self._distance += self._past[-1].speed * self.dt
                self._advance()
            now = self._frame
            joints = self.body.joints(np.concatenate([now.mean[None], now.samples[: max(samples, 0)]]))
            time = (self._frames - 1) * self.dt
            return Scene(time, self._past[-1].speed, self._distance, joints[0], joints[1:])

    def traces(self, seconds: float) -> Traces:
        """Speed and hip angle of the last seconds."""
        with self._lock:
            count = round(seconds / self.dt)
            steps, frames = list(islice(self._past, max(0, len(self._past) - count), None)), self._frames
        speed, hip, deviation = np.array([(step.speed, step.values[self._hip], step.deviation) for step in steps]).T
        return Traces(self.dt * np.arange(float(frames - len(steps)), frames), speed, hip, deviation)

    def history(self) -> Recording:
        """Everything since the last reset, the last ten minutes at most."""
        with self._lock:
            steps = list(self._past)
        speeds = np.array([step.speed for step in steps])
        return Recording(speeds, np.stack([step.values for step in steps]), self._channels, self.dt)

    def _advance(self) -> None:
        speed = self._next_speed()
        self._frame = self._live.step(speed)
        deviations = self._frame.samples[:, self._hip] - self._frame.mean[self._hip]
        self._past.append(_Step(speed, self._frame.mean, float(np.sqrt(np.mean(deviations**2)))))
        self._frames += 1

    def _next_speed(self) -> float:
        if self._preset is None:
            return self._by_hand
        signal = self.presets[self._preset]
        speed = float(signal[self._preset_frame % len(signal)])
        self._preset_frame += 1
        return speed
