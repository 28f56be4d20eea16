"""The avatar: trained on walks and runs with their speed as the only input, simulated under changing speeds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64
from matplotlib.figure import Figure

from revarb.data.series import Series
from revarb.models.fitted_rgp import FittedRGP
from revarb.motion.avatar.export import export_motion
from revarb.motion.avatar.live_avatar import Recording
from revarb.motion.avatar.model import HIP
from revarb.motion.gaits import GaitPhase, Gaits, find_phases, make_speed_signals, move_at_speed, synthesise
from revarb.motion.strip import draw_strip
from revarb.report.tables import Grid

SETTLING_SECONDS = 2.0  # of a new gait, before its frequency is measured
MIN_FREQUENCY = 0.3  # Hz: slower components are drift, not steps
RATE_WEIGHT = 3.0  # a change per frame of a third of a standard deviation counts like one standard deviation

WALKING, RUNNING = "#2a5caa", "#c1272d"
STRIPS = {"step": 0.125, "ramp": 0.2, "sine": 0.2}  # signals that are drawn, shortened by these factors
POSES = 18


def measure_signals(model: FittedRGP, gaits: Gaits) -> list[dict[str, Any]]:
    """Simulate every speed signal and measure the motion: the rows of the results file."""
    return [
        {
            "signal": name,
            "seconds": len(speeds) * model.dt,
            **measure_motion(synthesise(model, speeds), speeds, gaits, model.dt),
        }
        for name, speeds in make_speed_signals(gaits, model.dt).items()
    ]


def tabulate_signals(rows: Sequence[dict[str, Any]]) -> Grid:
    """Tabulate the rows of `measure_signals`, one line per phase."""
    cells = []
    for row in rows:
        for number, phase in enumerate(row["phases"]):
            common = [row["signal"], f"{row['range_excess']:.3f}", f"{row['jump_ratio']:.2f}"]
            cells.append([
                *(common if number == 0 else ["", "", ""]), phase["gait"], f"{phase['frequency']:.2f}",
                f"{phase['training_frequency']:.2f}", f"{phase['settled_after']:.2f}",
            ])  # fmt: skip
    columns = ("signal", "out of range", "jump", "gait", "hip Hz", "in training", "settled after s")
    return Grid("the avatar", columns, cells)


def draw_signals(model: FittedRGP, gaits: Gaits) -> dict[str, Figure]:
    """Draw strips of the shortened signals, by the names of their files without ending."""
    signals = {name: make_speed_signals(gaits, model.dt, pace)[name] for name, pace in STRIPS.items()}
    return {f"avatar_{name}": _draw_signal(name, speeds, model, gaits) for name, speeds in signals.items()}


def _draw_signal(name: str, speeds: Float64[np.ndarray, " T"], model: FittedRGP, gaits: Gaits) -> Figure:
    motion = move_at_speed(synthesise(model, speeds), model.output_names, speeds, model.dt)
    return draw_strip(
        {f"{name}: {speeds.min():.1f} to {speeds.max():.1f} m/s, walking blue, running red": motion.joints()},
        motion.skeleton,
        "Motion under a speed that no training motion has",
        model.dt,
        poses=POSES,
        phases=_colour_phases(speeds, gaits),
    )


def export_step(model: FittedRGP, gaits: Gaits, folder: Path) -> list[Path]:
    """Export the motion under the step signal as BVH, AMC, CSV and GIF."""
    speeds = make_speed_signals(gaits, model.dt)["step"]
    recording = Recording(speeds, synthesise(model, speeds), model.output_names, model.dt)
    seconds, colours = len(speeds) * model.dt, _colour_phases(speeds, gaits)
    return export_motion(recording, folder, "step", film_seconds=seconds, colours=colours)


def _colour_phases(speeds: Float64[np.ndarray, " T"], gaits: Gaits) -> list[str]:
    phases = find_phases(speeds, gaits)
    return [RUNNING if phase.name == "run" else WALKING for phase in phases for _ in range(phase.begin, phase.end)]


def measure_motion(
    values: Float64[np.ndarray, "T Dy"], speeds: Float64[np.ndarray, " T"], gaits: Gaits, dt: float
) -> dict[str, Any]:
    """Measure how far a simulated motion is from the training motions.

    Returns
    -------
    dict
        range_excess: how far an angle leaves its range in training, as a share of that range; 0 where none does.
        jump_ratio: the largest change of an angle between frames, relative to the largest one in training.
        phases: for each phase, the frequency of the hip, that of the training motions, and the settling time.
    """
    records = [*gaits.walks, *gaits.runs]
    low = np.min([record.y.min(axis=0) for record in records], axis=0)
    high = np.max([record.y.max(axis=0) for record in records], axis=0)
    jumps = np.max([np.abs(np.diff(record.y, axis=0)).max(axis=0) for record in records], axis=0)
    excess = np.maximum(values - high, low - values).max(axis=0) / (high - low)
    return {
        "range_excess": float(max(excess.max(), 0.0)),
        "jump_ratio": float((np.abs(np.diff(values, axis=0)).max(axis=0) / jumps).max()),
        "phases": [_measure_phase(values, phase, gaits, dt) for phase in find_phases(speeds, gaits)],
    }


def _measure_phase(values: Float64[np.ndarray, "T Dy"], phase: GaitPhase, gaits: Gaits, dt: float) -> dict[str, Any]:
    hip = gaits.walks[0].output_names.index(HIP)
    settled = values[phase.begin + round(SETTLING_SECONDS / dt) : phase.end, hip]
    expected = float(np.mean([find_frequency(record.y[:, hip], dt) for record in phase.gait]))
    return {
        "gait": phase.name,
        "seconds": (phase.end - phase.begin) * dt,
        "frequency": find_frequency(settled, dt),
        "training_frequency": expected,
        "settled_after": find_settling_time(values[phase.begin : phase.end], phase.gait, gaits, dt),
    }


def find_frequency(signal: Float64[np.ndarray, " T"], dt: float) -> float:
    """Find the dominant frequency, in Hz, of a signal of a few periods."""
    window = (signal - signal.mean()) * np.hanning(len(signal))
    size = 1 << 14
    power, axis = np.abs(np.fft.rfft(window, size)) ** 2, np.fft.rfftfreq(size, dt)
    power[axis < MIN_FREQUENCY] = 0.0
    return float(axis[power.argmax()])


def find_settling_time(values: Float64[np.ndarray, "T Dy"], gait: Sequence[Series], gaits: Gaits, dt: float) -> float:
    """Find the time, in seconds, after which every pose and its rate of change are nearest to this gait's."""
    records = (*gaits.walks, *gaits.runs)
    scale = np.concatenate([record.y for record in records]).std(axis=0)
    own = _squared_distances(values, gait, scale)
    others = [record for record in records if not any(record is each for each in gait)]
    wrong = np.flatnonzero(own > _squared_distances(values, others, scale))
    return float((wrong[-1] + 1) * dt) if len(wrong) else 0.0


def _squared_distances(values: np.ndarray, records: Sequence[Series], scale: np.ndarray) -> np.ndarray:
    # Of every row from the nearest row of the records.
    known = np.concatenate([_append_rates(record.y / scale) for record in records])
    asked = _append_rates(values / scale)
    squares = np.sum(asked**2, axis=1)[:, None] + np.sum(known**2, axis=1) - 2.0 * asked @ known.T
    return np.asarray(squares.min(axis=1))


def _append_rates(values: np.ndarray) -> np.ndarray:
    return np.concatenate([values, RATE_WEIGHT * np.gradient(values, axis=0)], axis=1)
