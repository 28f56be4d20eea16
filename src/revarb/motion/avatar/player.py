"""The avatar's life, frame by frame: what it is told, where it is, and what it has done. No browser."""

import math
import threading
from collections import deque
from itertools import islice
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.live import Live
from revarb.motion.avatar.body import Body
from revarb.motion.avatar.model import HIP
from revarb.motion.gaits import Gaits, in_motion, signals
from revarb.motion.kinematics import Motion
from revarb.runtime.interrupts import defer_interrupts

GHOSTS = 12  # drawn from the model, whether shown or not: the band needs them


HORIZON = 30  # frames until the ghosts begin anew at the mean-only run


REMEMBERED = 600.0  # seconds


FASTER = 1.1  # the slider goes so far beyond the fastest run


class Scene(NamedTuple):
    """What is to be seen now; places in metres, y up, the root above the origin, walking along z."""

    time: float
    speed: float
    distance: float
    joints: Float64[np.ndarray, "J 3"]
    ghosts: Float64[np.ndarray, "G J 3"]


class Traces(NamedTuple):
    """The last seconds as curves over the time since the last reset: speed, and the left hip's angle.

    The deviation is that of the ghosts from the mean-only run: the root of their mean square.
    """

    time: Float64[np.ndarray, " T"]
    speed: Float64[np.ndarray, " T"]
    hip: Float64[np.ndarray, " T"]
    deviation: Float64[np.ndarray, " T"]


class Played(NamedTuple):
    """What was played since the last reset, ten minutes of it at most."""

    speeds: Float64[np.ndarray, " T"]
    values: Float64[np.ndarray, "T Dy"]
    channels: tuple[str, ...]
    dt: float

    def motion(self) -> Motion:
        """The body on its way, as fast as it was told."""
        return in_motion(self.values, self.channels, self.speeds, self.dt)


class _Moment(NamedTuple):
    speed: float
    values: Float64[np.ndarray, " Dy"]
    deviation: float


class Player:
    """A live run under a hand or a preset. Every method may be called from any thread."""

    def __init__(self, model: FittedRGP, gaits: Gaits):
        self.dt = model.dt
        self.walking, self.running = gaits.walking_speed, gaits.running_speed
        self.fastest = math.ceil(10.0 * FASTER * max(record.u.max() for record in gaits.runs)) / 10.0
        self.presets = signals(gaits, model.dt)
        self.body = Body.of(model.output_names)
        self._channels, self._hip = model.output_names, model.output_names.index(HIP)
        middle, width = model.scaling.y_mean[self._hip], 2.6 * model.scaling.y_std[self._hip]
        self.hip_range = (float(middle - width), float(middle + width))
        self._live = Live(model, start=model.final_states[0], ghosts=GHOSTS, horizon=HORIZON)
        self._past: deque[_Moment] = deque(maxlen=round(REMEMBERED / model.dt))
        self._lock = threading.Lock()
        self._by_hand, self._preset, self._playing = self.walking, None, True
        with defer_interrupts():  # the first frame is compiled
            self.reset()

    @property
    def playing(self) -> bool:
        """Whether `tick` goes on."""
        return self._playing

    @property
    def preset(self) -> str | None:
        """The preset that says the speed; none where a hand does."""
        return self._preset

    def play(self, on: bool = True) -> None:
        """Go on, or stand still."""
        self._playing = on

    def steer(self, speed: float) -> None:
        """Take the speed by hand, whatever comes: it is kept between 0 and the fastest."""
        if math.isfinite(speed):
            with self._lock:
                self._by_hand, self._preset = min(max(float(speed), 0.0), self.fastest), None

    def follow(self, preset: str) -> None:
        """Take the speed from a preset, from its beginning, again and again."""
        if preset not in self.presets:
            raise InputError(f"there is no preset {preset!r}; there are {', '.join(self.presets)}")
        with self._lock:
            self._preset, self._preset_frame = preset, 0

    def reset(self) -> None:
        """Back to the first frame; a preset begins anew."""
        with self._lock:
            self._live.reset()
            self._past.clear()
            self._frames, self._distance, self._preset_frame = 0, 0.0, 0
            self._advance()

    def tick(self, ghosts: int = 0) -> Scene:
        """One frame on, unless it stands still, and what is to be seen then, with so many of the ghosts."""
        with self._lock:
            if self._playing:
                self._distance += self._past[-1].speed * self.dt
                self._advance()
            now = self._frame
            joints = self.body.joints(np.concatenate([now.mean[None], now.ghosts[: max(ghosts, 0)]]))
            time = (self._frames - 1) * self.dt
            return Scene(time, self._past[-1].speed, self._distance, joints[0], joints[1:])

    def traces(self, seconds: float) -> Traces:
        """The last seconds as curves."""
        with self._lock:
            count = round(seconds / self.dt)
            moments, frames = list(islice(self._past, max(0, len(self._past) - count), None)), self._frames
        speed, hip, deviation = np.array([(each.speed, each.values[self._hip], each.deviation) for each in moments]).T
        return Traces(self.dt * np.arange(float(frames - len(moments)), frames), speed, hip, deviation)

    def history(self) -> Played:
        """What was played since the last reset."""
        with self._lock:
            moments = list(self._past)
        speeds = np.array([each.speed for each in moments])
        return Played(speeds, np.stack([each.values for each in moments]), self._channels, self.dt)

    def _advance(self) -> None:
        speed = self._commanded()
        self._frame = self._live.step(speed)
        away = self._frame.ghosts[:, self._hip] - self._frame.mean[self._hip]
        self._past.append(_Moment(speed, self._frame.mean, float(np.sqrt(np.mean(away**2)))))
        self._frames += 1

    def _commanded(self) -> float:
        if self._preset is None:
            return self._by_hand
        signal = self.presets[self._preset]
        speed = float(signal[self._preset_frame % len(signal)])
        self._preset_frame += 1
        return speed
