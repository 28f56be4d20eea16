"""The avatar: five walks and five runs, learned with their speed as the only input, then moved by speeds never seen."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from revarb.data.series import Series
from revarb.motion.avatar.model import HIP
from revarb.motion.gaits import GaitPhase, Gaits, find_phases

SETTLING = 2.0  # seconds that a new gait is given before its frequency is measured


LEAST_FREQUENCY = 0.3  # Hz: below it is drift, not a step


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
        "phases": [_phase_figures(values, phase, gaits, dt) for phase in find_phases(speeds, gaits)],
    }


def _phase_figures(values: Float64[np.ndarray, "T Dy"], phase: GaitPhase, gaits: Gaits, dt: float) -> Mapping[str, Any]:
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
