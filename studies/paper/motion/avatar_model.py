"""The avatar's model: from a file, or trained once with the settings below and kept in the user's cache folder."""

import hashlib
import json
import os
from pathlib import Path

import pooch

import revarb
from studies.output import make_folder
from studies.paper.motion import cmu35
from studies.paper.motion.live_avatar import HIP, Body

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


def load_avatar_records() -> list[revarb.Series]:
    """Load the training motions, walks first."""
    return [cmu35.load_speed_series(number) for number in cmu35.AVATAR_MOTIONS]


def open_model(path: str | os.PathLike[str]) -> revarb.FittedRGP:
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
    Body.from_channels(model.output_names)
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
    path = cached_model_path(AVATAR)
    if not path.is_file():
        return None
    try:
        return open_model(path)
    except revarb.RevarbError:  # damaged, or written by a newer version: train again
        return None


def train_model() -> revarb.FittedRGP:
    """Train a model with the settings above; raises KeyboardInterrupt when interrupted."""
    model = AVATAR.fit(load_avatar_records(), seed=SEED, progress=True)
    if model.status == "interrupted":
        raise KeyboardInterrupt
    return model


def cache_model(model: revarb.FittedRGP) -> Path:
    """Save a trained model to the user's cache folder, for `load_cached_model`."""
    path = cached_model_path(model.spec)
    make_folder(path.parent)
    return model.save(path)
