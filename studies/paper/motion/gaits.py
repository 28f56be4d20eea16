"""Walking and running motions, and speed signals that command both."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float64

from revarb import FittedRGP, Series
from studies.paper.motion import cmu35
from studies.paper.motion.kinematics import Motion


@dataclass(frozen=True)
class Gaits:
    """Records of walking and running (`cmu35.load_speed_series`)."""

    walks: tuple[Series, ...]
    runs: tuple[Series, ...]

    @classmethod
    def from_records(cls, records: Sequence[Series]) -> "Gaits":
        """Sort records, given in the order of `cmu35.AVATAR_MOTIONS`, into walks and runs."""
        pairs = list(zip(cmu35.AVATAR_MOTIONS, records, strict=True))
        runs = tuple(record for number, record in pairs if number in cmu35.RUNS)
        return cls(tuple(record for number, record in pairs if number not in cmu35.RUNS), runs)

    @property
    def walking_speed(self) -> float:
        """Mean speed of the walks in metres per second."""
        return float(np.mean([record.u[0, 0] for record in self.walks]))

    @property
    def running_speed(self) -> float:
        """Mean speed of the runs in metres per second."""
        return float(np.mean([record.u[0, 0] for record in self.runs]))


def make_speed_signals(gaits: Gaits, dt: float, pace: float = 1.0) -> dict[str, Float64[np.ndarray, " T"]]:
    """Make speed signals to simulate with, by name; `pace` scales their durations.

    In the training motions the speed is constant, so every change of speed is an extrapolation.
    """
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
    """Simulate (mean-only) under these speeds, starting from the final state of the first training walk."""
    return model.simulate(speeds[:, None], "mean", start=model.final_states[0]).mean


def move_at_speed(
    values: Float64[np.ndarray, "T Dy"], channels: Sequence[str], speeds: Float64[np.ndarray, " T"], dt: float
) -> Motion:
    """Convert simulated postures to a motion whose root moves forward at the commanded speeds."""
    metres_per_unit = cmu35.load_skeleton().metres_per_unit
    root = np.zeros((len(values), 3))
    root[:, cmu35.FORWARD] = np.concatenate([[0.0], np.cumsum(speeds[:-1])]) * dt / metres_per_unit
    return cmu35.to_motion(values, channels, root)


@dataclass(frozen=True)
class GaitPhase:
    """Rows begin to end (exclusive) of a speed signal, in which it commands one gait; `gait` has its records."""

    name: str
    begin: int
    end: int
    gait: tuple[Series, ...]


def find_phases(speeds: Float64[np.ndarray, " T"], gaits: Gaits) -> list[GaitPhase]:
    """Split a speed signal into phases of walking and running, at the midpoint of the two mean speeds."""
    running = speeds > 0.5 * (gaits.walking_speed + gaits.running_speed)
    edges = [0, *(np.flatnonzero(np.diff(running)) + 1).tolist(), len(speeds)]
    return [
        GaitPhase("run" if running[begin] else "walk", begin, end, gaits.runs if running[begin] else gaits.walks)
        for begin, end in pairwise(edges)
    ]
