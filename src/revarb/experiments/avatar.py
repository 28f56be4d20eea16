"""The avatar: five walks and five runs, learned with their speed as the only input, then moved by speeds never seen."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float64

from revarb.datasets import cmu35
from revarb.datasets.mocap import Motion
from revarb.experiments.shipped import shipped_text
from revarb.fitted import FittedRGP
from revarb.rgp import RGP
from revarb.series import Series

HIP = "lfemur.rx"
SETTLING = 2.0  # seconds that a new gait is given before its frequency is measured
LEAST_FREQUENCY = 0.3  # Hz: below it is drift, not a step


def avatar_spec() -> RGP:
    """The model as it ships with the package: experiments/avatar.toml."""
    return RGP.from_dict(tomllib.loads(shipped_text("avatar.toml")))


def avatar_records() -> list[Series]:
    """The training motions, walks first."""
    return [cmu35.controlled(number) for number in cmu35.AVATAR]


@dataclass(frozen=True)
class Gaits:
    """What the training motions say about walking and running."""

    walks: tuple[Series, ...]
    runs: tuple[Series, ...]

    @classmethod
    def of(cls, records: Sequence[Series]) -> "Gaits":
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
class Phase:
    """A stretch of a signal with one gait."""

    name: str
    begin: int
    end: int
    gait: tuple[Series, ...]


def phases_of(speeds: Float64[np.ndarray, " T"], gaits: Gaits) -> list[Phase]:
    """Where a signal commands walking and where running: below or above the middle of both speeds."""
    running = speeds > 0.5 * (gaits.walking_speed + gaits.running_speed)
    edges = [0, *(np.flatnonzero(np.diff(running)) + 1).tolist(), len(speeds)]
    return [
        Phase("run" if running[begin] else "walk", begin, end, gaits.runs if running[begin] else gaits.walks)
        for begin, end in pairwise(edges)
    ]


def figures(
    values: Float64[np.ndarray, "T Dy"], speeds: Float64[np.ndarray, " T"], gaits: Gaits, dt: float
) -> dict[str, Any]:
    """How far a synthesised motion is from what the training motions do.

    range_excess   how far an angle leaves its range in training, as a share of that range; 0 where none does
    jump_ratio     the largest step of an angle from frame to frame, over the largest in training
    phases         for each: the hip's frequency, that of the training motions, and the seconds until it has settled
    """
    records = [*gaits.walks, *gaits.runs]
    low = np.min([record.y.min(axis=0) for record in records], axis=0)
    high = np.max([record.y.max(axis=0) for record in records], axis=0)
    jumps = np.max([np.abs(np.diff(record.y, axis=0)).max(axis=0) for record in records], axis=0)
    excess = np.maximum(values - high, low - values).max(axis=0) / (high - low)
    return {
        "range_excess": float(max(excess.max(), 0.0)),
        "jump_ratio": float((np.abs(np.diff(values, axis=0)).max(axis=0) / jumps).max()),
        "phases": [_phase_figures(values, phase, gaits, dt) for phase in phases_of(speeds, gaits)],
    }


def _phase_figures(values: Float64[np.ndarray, "T Dy"], phase: Phase, gaits: Gaits, dt: float) -> Mapping[str, Any]:
    hip = gaits.walks[0].output_names.index(HIP)
    settled = values[phase.begin + round(SETTLING / dt) : phase.end, hip]
    expected = float(np.mean([frequency(record.y[:, hip], dt) for record in phase.gait]))
    return {
        "gait": phase.name,
        "seconds": (phase.end - phase.begin) * dt,
        "frequency": frequency(settled, dt),
        "training_frequency": expected,
        "settled_after": settling_time(values[phase.begin : phase.end], phase.gait, gaits, dt),
    }


def frequency(signal: Float64[np.ndarray, " T"], dt: float) -> float:
    """The dominant frequency, in Hz, of a signal of a few periods."""
    window = (signal - signal.mean()) * np.hanning(len(signal))
    size = 1 << 14
    power, axis = np.abs(np.fft.rfft(window, size)) ** 2, np.fft.rfftfreq(size, dt)
    power[axis < LEAST_FREQUENCY] = 0.0
    return float(axis[power.argmax()])


def settling_time(values: Float64[np.ndarray, "T Dy"], gait: Sequence[Series], gaits: Gaits, dt: float) -> float:
    """Seconds after which every pose, with its rate of change, is nearest to a training pose of this gait."""
    scale = np.concatenate([record.y for record in (*gaits.walks, *gaits.runs)]).std(axis=0)
    own = _nearest(values, gait, scale)
    others = [record for record in (*gaits.walks, *gaits.runs) if not any(record is each for each in gait)]
    wrong = np.flatnonzero(own > _nearest(values, others, scale))
    return float((wrong[-1] + 1) * dt) if len(wrong) else 0.0


def _nearest(values: np.ndarray, records: Sequence[Series], scale: np.ndarray) -> np.ndarray:
    known = np.concatenate([_with_rates(record.y / scale) for record in records])
    asked = _with_rates(values / scale)
    squares = np.sum(asked**2, axis=1)[:, None] + np.sum(known**2, axis=1) - 2.0 * asked @ known.T
    return np.asarray(squares.min(axis=1))


def _with_rates(values: np.ndarray) -> np.ndarray:
    # A rate per tenth of a period or so weighs as much as a position.
    return np.concatenate([values, 3.0 * np.gradient(values, axis=0)], axis=1)
