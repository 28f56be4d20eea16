"""Walking and running as learnt from the training motions, and the speeds that command them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float64

from revarb.data.series import Series
from revarb.models.fitted_rgp import FittedRGP
from revarb.motion import cmu35
from revarb.motion.kinematics import Motion


@dataclass(frozen=True)
class Gaits:
    """What the training motions say about walking and running."""

    walks: tuple[Series, ...]
    runs: tuple[Series, ...]

    @classmethod
    def from_records(cls, records: Sequence[Series]) -> "Gaits":
        """Records in the order of `cmu35.AVATAR`."""
        pairs = list(zip(cmu35.AVATAR, records, strict=True))
        runs = tuple(record for number, record in pairs if number in cmu35.RUNS)
        return cls(tuple(record for number, record in pairs if number not in cmu35.RUNS), runs)

    @property
    def walking_speed(self) -> float:
        """Mean speed of the walks, metres per second."""
        return float(np.mean([record.u[0, 0] for record in self.walks]))

    @property
    def running_speed(self) -> float:
        """Mean speed of the runs."""
        return float(np.mean([record.u[0, 0] for record in self.runs]))


def signals(gaits: Gaits, dt: float, pace: float = 1.0) -> dict[str, Float64[np.ndarray, " T"]]:
    """Speeds over time, by name; with a smaller `pace` they are shorter. Nobody in training changes his speed."""
    walk, run = gaits.walking_speed, gaits.running_speed

    def hold(speed: float, seconds: float) -> np.ndarray:
        return np.full(round(pace * seconds / dt), speed)

    slope = np.linspace(walk, run, round(pace * 15.0 / dt))
    time = np.arange(round(pace * 40.0 / dt)) * dt
    return {
        "step": np.concatenate([hold(walk, 20.0), hold(run, 20.0), hold(walk, 20.0)]),
        "ramp": np.concatenate([hold(walk, 5.0), slope, hold(run, 5.0), slope[::-1], hold(walk, 5.0)]),
        "sine": walk + (run - walk) * 0.5 * (1.0 - np.cos(2.0 * np.pi * time / (pace * 20.0))),
        "stop and go": np.concatenate([hold(speed, 4.0) for speed in (walk, 0.5 * walk, walk, run, 0.5 * walk, walk)]),
    }


def synthesise(model: FittedRGP, speeds: Float64[np.ndarray, " T"]) -> Float64[np.ndarray, "T Dy"]:
    """The mean-only run under these speeds, going on from where the first walk ended."""
    return model.simulate(speeds[:, None], "mean", start=model.final_states[0]).mean


def in_motion(
    values: Float64[np.ndarray, "T Dy"], channels: Sequence[str], speeds: Float64[np.ndarray, " T"], dt: float
) -> Motion:
    """The body on its way: height, attitude and joints as they are, forward as fast as it was told."""
    unit = cmu35.skeleton().unit
    way = np.concatenate([[0.0], np.cumsum(speeds[:-1])]) * dt / unit
    root = np.zeros((len(values), 3))
    root[:, cmu35.FORWARD] = way
    return cmu35.pose(values, channels, root)


@dataclass(frozen=True)
class GaitPhase:
    """A stretch of a signal with one gait."""

    name: str
    begin: int
    end: int
    gait: tuple[Series, ...]


def find_phases(speeds: Float64[np.ndarray, " T"], gaits: Gaits) -> list[GaitPhase]:
    """Where a signal commands walking and where running: below or above the middle of both speeds."""
    running = speeds > 0.5 * (gaits.walking_speed + gaits.running_speed)
    edges = [0, *(np.flatnonzero(np.diff(running)) + 1).tolist(), len(speeds)]
    return [
        GaitPhase("run" if running[begin] else "walk", begin, end, gaits.runs if running[begin] else gaits.walks)
        for begin, end in pairwise(edges)
    ]
