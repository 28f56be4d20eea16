"""The avatar: the gaits that it learns, the speeds that command it, and its model, from a file or trained once."""

import hashlib
import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pooch
from jaxtyping import Float64

import revarb
from studies.output import make_folder
from studies.paper.motion import cmu35
from studies.records import raise_if_interrupted

# The paper's avatar: one hidden layer, a recognition model of 500 and 200 units, from speed to posture.
AVATAR = revarb.RGP.from_dict({
    "lags": 6,
    "input_lags": 15,
    "hidden": 1,
    "inducing": 100,
    "latent_dim": 3,
    "calibrate": False,  # only the mean-only run is used
    "recipe": {
        "hidden_noise": 0.01,
        "output_noise": 0.3,
        "latent_variance": 0.1,
        "stages": [{"free": ["mu", "lam", "zeta", "w"], "iterations": 200}],
    },
    "recognition": {"hidden": [500, 200], "starts": 1, "start_steps": 300, "rounds": [150, 150]},
})  # fmt: skip
SEED = 0
MAX_DT, MIN_DT = 0.2, 1 / 120  # seconds per frame: limits of what can be shown in real time
HIP = "lfemur.rx"


@dataclass(frozen=True)
class Gaits:
    """Records of walking and running (`cmu35.load_speed_series`)."""

    walks: tuple[revarb.Series, ...]
    runs: tuple[revarb.Series, ...]

    @classmethod
    def load(cls) -> "Gaits":
        """Load the walks and runs of the paper."""
        records = {number: cmu35.load_speed_series(number) for number in cmu35.AVATAR_MOTIONS}
        runs = tuple(record for number, record in records.items() if number in cmu35.RUNS)
        walks = tuple(record for number, record in records.items() if number not in cmu35.RUNS)
        return cls(walks, runs)

    @property
    def records(self) -> list[revarb.Series]:
        """All of them, walks first."""
        return [*self.walks, *self.runs]

    @property
    def walking_speed(self) -> float:
        """Mean speed of the walks in metres per second."""
        return float(np.mean([record.u[0, 0] for record in self.walks]))

    @property
    def running_speed(self) -> float:
        """Mean speed of the runs in metres per second."""
        return float(np.mean([record.u[0, 0] for record in self.runs]))


@dataclass(frozen=True)
class GaitPhase:
    """Rows begin to end (exclusive) of a speed signal, in which it commands one gait; `gait` has its records."""

    name: str
    begin: int
    end: int
    gait: tuple[revarb.Series, ...]


def find_phases(speeds: Float64[np.ndarray, " T"], gaits: Gaits) -> list[GaitPhase]:
    """Split a speed signal into phases of walking and running, at the midpoint of the two mean speeds."""
    running = speeds > 0.5 * (gaits.walking_speed + gaits.running_speed)
    edges = [0, *(np.flatnonzero(np.diff(running)) + 1).tolist(), len(speeds)]
    return [
        GaitPhase("run" if running[begin] else "walk", begin, end, gaits.runs if running[begin] else gaits.walks)
        for begin, end in pairwise(edges)
    ]


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


def synthesise(model: revarb.FittedRGP, speeds: Float64[np.ndarray, " T"]) -> Float64[np.ndarray, "T Dy"]:
    """Simulate (mean-only) under these speeds, starting from the final state of the first training walk."""
    return model.simulate(speeds[:, None], "mean", start=model.final_states[0]).mean


def open_model(path: Path) -> revarb.FittedRGP:
    """Load a model file; raises revarb.InputError unless the model can move the avatar."""
    model = revarb.load(path)
    try:
        return check_model(model)
    except revarb.InputError as error:
        raise revarb.InputError(f"{path} cannot move the avatar: {error}") from None


def check_model(model: revarb.FittedRGP | revarb.Ensemble) -> revarb.FittedRGP:
    """Validate that a model maps a speed to the subject's posture."""
    if not isinstance(model, revarb.FittedRGP):
        raise revarb.InputError(f"it contains a model of type {type(model).__name__}; a single FittedRGP is needed")
    if model.input_names != (cmu35.SPEED,):
        raise revarb.InputError(f"its only input must be {cmu35.SPEED!r}, received {list(model.input_names)}")
    for needed in (cmu35.HEIGHT, HIP):
        if needed not in model.output_names:
            raise revarb.InputError(f"its outputs lack {needed!r}; fit it to records of cmu35.load_speed_series")
    cmu35.to_motion(np.zeros((1, len(model.output_names))), model.output_names)  # raises unless they define a pose
    if not MIN_DT <= model.dt <= MAX_DT:
        raise revarb.InputError(f"its sampling interval must be {MIN_DT:.4f} to {MAX_DT} s, but is {model.dt:g} s")
    return model


def cached_model_path(spec: revarb.RGP) -> Path:
    """Path of the trained model in the user's cache folder; it depends on the settings."""
    settings = {"spec": spec.to_dict(), "motions": cmu35.AVATAR_MOTIONS, "seed": SEED}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    return Path(pooch.os_cache("revarb")) / "avatar" / f"avatar-{digest[:12]}.rgp"


def load_cached_model() -> revarb.FittedRGP | None:
    """Load the cached model; None where there is none, or it cannot be read."""
    try:
        return open_model(cached_model_path(AVATAR))
    except revarb.RevarbError:  # none yet, damaged, or written by a newer version: train again
        return None


def train_model() -> revarb.FittedRGP:
    """Train a model with the settings above; raises KeyboardInterrupt when interrupted."""
    return raise_if_interrupted(AVATAR.fit(Gaits.load().records, seed=SEED, progress=True))


def cache_model(model: revarb.FittedRGP) -> Path:
    """Save a trained model to the user's cache folder, for `load_cached_model`."""
    path = cached_model_path(model.spec)
    make_folder(path.parent)
    return model.save(path)
