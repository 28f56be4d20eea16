"""The paper's avatar: trained on walks and runs with their speed as the only input, simulated under changing speeds.

`python -m studies avatar` trains it, measures its motions and draws them; with --live it is a page for the browser.
"""

import argparse
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64
from matplotlib.figure import Figure

import revarb
from studies.paper.motion.avatar_model import (
    AVATAR,
    HIP,
    GaitPhase,
    Gaits,
    cache_model,
    find_phases,
    load_cached_model,
    make_speed_signals,
    open_model,
    synthesise,
    train_model,
)
from studies.paper.motion.live_avatar import LiveAvatar, Recording
from studies.paper.motion.strip import draw_strip
from studies.records import raise_if_interrupted
from studies.study import Fit, Result, Study
from studies.tables import Grid, Row, Rows, Target, at_most, select

SETTLING_SECONDS = 2.0  # of a new gait, before its frequency is measured
MIN_FREQUENCY = 0.3  # Hz: slower components are drift, not steps
RATE_WEIGHT = 3.0  # a change per frame of a third of a standard deviation counts like one standard deviation

# What the study must show under the step signal: angles in their range in training, give or take, no jumps, the
# frequencies of the gaits, and gaits that have settled in time.
RANGE_EXCESS, JUMP_RATIO, FREQUENCY, SETTLED = 0.15, 1.5, 0.15, 2.0

WALKING, RUNNING = "#2a5caa", "#c1272d"
STRIPS = {"step": 0.125, "ramp": 0.2, "sine": 0.2}  # signals that are drawn, shortened by these factors
POSES = 18
FOLDER = Path("avatar_export")  # of what the page in the browser exports


class Avatar(Study):
    """One model, simulated under four speed signals."""

    name, title = "avatar", "The avatar: motion under speeds that no training motion has"
    protocol = "five walks and five runs with their mean speed as input; mean-only runs from the end of the first walk"
    columns = ("signal", "seconds", "range_excess", "jump_ratio", "phases")
    lists = ("phases",)
    default_seeds = 1
    concurrent = False
    spec = AVATAR

    def list_fits(self) -> list[Fit]:
        """The fit."""
        return [Fit("cmu35", "avatar", seed) for seed in range(self.seeds)]

    def run_fit(self, fit: Fit) -> Result:
        """Train the avatar and measure its motions."""
        gaits = Gaits.load()
        model = raise_if_interrupted(self.spec.fit(gaits.records, seed=fit.seed or 0, progress=True))
        rows = [
            {"signal": name, "seed": fit.seed, "seconds": len(speeds) * model.dt,
             **measure_motion(synthesise(model, speeds), speeds, gaits, model.dt)}
            for name, speeds in make_speed_signals(gaits, model.dt).items()
        ]  # fmt: skip
        return Result(rows, (model, gaits))

    def tables(self, rows: Rows) -> list[Grid]:
        """A line per signal and phase."""
        cells = []
        for row in rows:
            for number, phase in enumerate(row["phases"]):
                common = [row["signal"], f"{row['range_excess']:.3f}", f"{row['jump_ratio']:.2f}"]
                found = (f"{phase[name]:.2f}" for name in ("frequency", "training_frequency", "settled_after"))
                cells.append([*(common if number == 0 else [""] * 3), phase["gait"], *found])
        columns = ("signal", "out of range", "jump", "gait", "hip Hz", "in training", "settled after s")
        return [Grid("the avatar", columns, cells)]

    def targets(self, rows: Rows) -> list[Target]:
        """The step signal: a walk, a run and a walk that stay within the limits above."""
        return [target for row in select(rows, signal="step") for target in _judge_step(row)]

    def figures(self, rows: Rows, drawn: Mapping[Fit, Any]) -> dict[str, Figure]:
        """Strips of the shortened signals."""
        if not drawn:
            return {}
        model, gaits = next(iter(drawn.values()))
        signals = {name: make_speed_signals(gaits, model.dt, pace)[name] for name, pace in STRIPS.items()}
        return {f"avatar_{name}": _draw_signal(name, speeds, model, gaits) for name, speeds in signals.items()}

    def write_more(self, folder: Path, rows: Rows, drawn: Mapping[Fit, Any]) -> list[Path]:
        """The model, and the motion under the step signal as BVH, AMC, CSV and GIF."""
        if not drawn:
            return []
        model, gaits = next(iter(drawn.values()))
        speeds = make_speed_signals(gaits, model.dt)["step"]
        seconds, colours = len(speeds) * model.dt, _colour_phases(speeds, gaits)
        return [model.save(folder / "avatar.rgp"), *_record(model, speeds).export(folder, "step", seconds, colours)]

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Options of the page in the browser."""
        parser.add_argument("--live", action="store_true", help="open a page in which a slider sets the speed")
        parser.add_argument("--model", type=Path, help="a model file for --live; default: trained once and cached")
        parser.add_argument("--port", type=int, default=8080, help="port of the page; 0 takes any that is free")
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on; default: this machine only")

    def run(self, options: argparse.Namespace, command: str) -> None:
        """Serve the page in the browser, or carry out the study."""
        if options.live:
            serve_avatar(options.model, options.port, options.host, options.pictures or FOLDER)
        else:
            super().run(options, command)


def _judge_step(row: Row) -> list[Target]:
    gaits = [phase["gait"] for phase in row["phases"]]
    ratios = [abs(phase["frequency"] / phase["training_frequency"] - 1.0) for phase in row["phases"]]
    return [
        Target("step: it walks, runs and walks", gaits == ["walk", "run", "walk"], ", ".join(gaits)),
        at_most("step: angles out of their range in training, as a share of it,", row["range_excess"], RANGE_EXCESS),
        at_most("step: largest change per frame / that in training", row["jump_ratio"], JUMP_RATIO),
        at_most("step: deviation of the hip's frequency from that in training", max(ratios), FREQUENCY),
        at_most("step: seconds to settle", max(phase["settled_after"] for phase in row["phases"]), SETTLED),
    ]


def measure_motion(
    values: Float64[np.ndarray, "T Dy"], speeds: Float64[np.ndarray, " T"], gaits: Gaits, dt: float
) -> dict[str, Any]:
    """Measure how far a simulated motion is from the training motions.

    range_excess  how far an angle leaves its range in training, as a share of that range; 0 where none does
    jump_ratio    the largest change of an angle between frames, relative to the largest one in training
    phases        for each phase, the frequency of the hip, that of the training motions, and the settling time
    """
    known = np.concatenate([record.y for record in gaits.records])
    low, high = known.min(axis=0), known.max(axis=0)
    jumps = np.max([np.abs(np.diff(record.y, axis=0)).max(axis=0) for record in gaits.records], axis=0)
    excess = np.maximum(values - high, low - values).max(axis=0) / (high - low)
    return {
        "range_excess": float(max(excess.max(), 0.0)),
        "jump_ratio": float((np.abs(np.diff(values, axis=0)).max(axis=0) / jumps).max()),
        "phases": [_measure_phase(values, phase, gaits, dt) for phase in find_phases(speeds, gaits)],
    }


def _measure_phase(values: Float64[np.ndarray, "T Dy"], phase: GaitPhase, gaits: Gaits, dt: float) -> dict[str, Any]:
    hip = gaits.walks[0].output_names.index(HIP)
    settled = values[phase.begin + round(SETTLING_SECONDS / dt) : phase.end, hip]
    return {
        "gait": phase.name,
        "seconds": (phase.end - phase.begin) * dt,
        "frequency": find_frequency(settled, dt),
        "training_frequency": float(np.mean([find_frequency(record.y[:, hip], dt) for record in phase.gait])),
        "settled_after": find_settling_time(values[phase.begin : phase.end], phase.gait, gaits, dt),
    }


def find_frequency(signal: Float64[np.ndarray, " T"], dt: float) -> float:
    """Find the dominant frequency, in Hz, of a signal of a few periods."""
    window = (signal - signal.mean()) * np.hanning(len(signal))
    size = 1 << 14
    power, axis = np.abs(np.fft.rfft(window, size)) ** 2, np.fft.rfftfreq(size, dt)
    power[axis < MIN_FREQUENCY] = 0.0
    return float(axis[power.argmax()])


def find_settling_time(
    values: Float64[np.ndarray, "T Dy"], gait: Sequence[revarb.Series], gaits: Gaits, dt: float
) -> float:
    """Find the time, in seconds, after which every pose and its rate of change are nearest to this gait's."""
    scale = np.concatenate([record.y for record in gaits.records]).std(axis=0)
    own = _squared_distances(values, gait, scale)
    others = [record for record in gaits.records if not any(record is each for each in gait)]
    wrong = np.flatnonzero(own > _squared_distances(values, others, scale))
    return float((wrong[-1] + 1) * dt) if len(wrong) else 0.0


def _squared_distances(values: np.ndarray, records: Sequence[revarb.Series], scale: np.ndarray) -> np.ndarray:
    # Of every row from the nearest row of the records.
    known = np.concatenate([_append_rates(record.y / scale) for record in records])
    asked = _append_rates(values / scale)
    squares = np.sum(asked**2, axis=1)[:, None] + np.sum(known**2, axis=1) - 2.0 * asked @ known.T
    return np.asarray(squares.min(axis=1))


def _append_rates(values: np.ndarray) -> np.ndarray:
    return np.concatenate([values, RATE_WEIGHT * np.gradient(values, axis=0)], axis=1)


def serve_avatar(model_file: Path | None, port: int, host: str, folder: Path) -> None:
    """Serve the page of the avatar until Ctrl-C; its model is trained on first use."""
    try:
        from studies.paper.motion.live_page import LivePage, check_address  # viser is slow to import, and optional
    except ModuleNotFoundError as error:
        raise revarb.InputError(f'the page needs {error.name}; pip install "revarb[avatar]"') from None
    check_address(host, port)
    model = _load_or_train_model() if model_file is None else open_model(model_file)
    avatar = LiveAvatar(model, Gaits.load())
    pressed: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        with LivePage(avatar, host, port, folder) as page:
            print(f"the avatar is at {page.url} (Ctrl-C ends it)", flush=True)
            page.run(until=lambda: bool(pressed))
    finally:
        signal.signal(signal.SIGINT, previous)


def _load_or_train_model() -> revarb.FittedRGP:
    if (cached := load_cached_model()) is not None:
        return cached
    print("training the avatar on ten walks and runs, once; this takes some minutes", flush=True)
    begin = time.perf_counter()
    model = train_model()
    print(f"trained in {time.perf_counter() - begin:.0f} s")
    try:
        print(f"wrote {cache_model(model)}")
    except revarb.RevarbError as error:
        print(f"the trained model could not be cached: {error}")
    return model


def _record(model: revarb.FittedRGP, speeds: Float64[np.ndarray, " T"]) -> Recording:
    return Recording(speeds, synthesise(model, speeds), model.output_names, model.dt)


def _draw_signal(name: str, speeds: Float64[np.ndarray, " T"], model: revarb.FittedRGP, gaits: Gaits) -> Figure:
    motion = _record(model, speeds).motion()
    return draw_strip(
        {f"{name}: {speeds.min():.1f} to {speeds.max():.1f} m/s, walking blue, running red": motion.joints()},
        motion.skeleton,
        "Motion under a speed that no training motion has",
        model.dt,
        poses=POSES,
        phases=_colour_phases(speeds, gaits),
    )


def _colour_phases(speeds: Float64[np.ndarray, " T"], gaits: Gaits) -> list[str]:
    phases = find_phases(speeds, gaits)
    return [RUNNING if phase.name == "run" else WALKING for phase in phases for _ in range(phase.begin, phase.end)]


STUDY = Avatar
