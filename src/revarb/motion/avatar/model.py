"""The avatar's model: from a file, or trained once with the shipped settings and kept in the user's cache folder."""

import hashlib
import json
import os
import tomllib
from importlib.resources import files
from pathlib import Path

from platformdirs import user_cache_path

from revarb.config.rgp import RGP
from revarb.data.series import Series
from revarb.errors import InputError, RevarbError
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.model_file import load
from revarb.motion import cmu35
from revarb.motion.avatar.body import Body
from revarb.optim.status import Status
from revarb.runtime.files import make_folder

SEED = 0
MAX_DT, MIN_DT = 0.2, 1 / 120  # seconds per frame: limits of what can be shown in real time
HIP = "lfemur.rx"


def load_avatar_spec() -> RGP:
    """Load the settings that ship with the package: avatar.toml."""
    return RGP.from_dict(tomllib.loads((files("revarb.motion.avatar") / "avatar.toml").read_text(encoding="utf-8")))


def load_avatar_records() -> list[Series]:
    """Load the training motions, walks first."""
    return [cmu35.load_speed_series(number) for number in cmu35.AVATAR_MOTIONS]


def open_model(path: str | os.PathLike[str]) -> FittedRGP:
    """Load a model file; raises InputError unless the model can move the avatar."""
    model = load(path)
    try:
        return check_model(model)
    except InputError as error:
        raise InputError(f"{path} cannot move the avatar: {error}") from None


def check_model(model: FittedRGP | Ensemble) -> FittedRGP:
    """Validate that a model maps a speed to the subject's posture."""
    if not isinstance(model, FittedRGP):
        raise InputError(f"it contains a model of type {type(model).__name__}; a single FittedRGP is needed")
    if model.input_names != (cmu35.SPEED,):
        raise InputError(f"its only input must be {cmu35.SPEED!r}, received {list(model.input_names)}")
    for needed in (cmu35.HEIGHT, HIP):
        if needed not in model.output_names:
            raise InputError(f"its outputs lack {needed!r}; fit it to records of cmu35.load_speed_series")
    Body.from_channels(model.output_names)
    if not MIN_DT <= model.dt <= MAX_DT:
        raise InputError(f"its sampling interval must be {MIN_DT:.4f} to {MAX_DT} s, but is {model.dt:g} s")
    return model


def cached_model_path(spec: RGP) -> Path:
    """Path of the trained model in the user's cache folder; it depends on the settings."""
    settings = {"spec": spec.to_dict(), "motions": cmu35.AVATAR_MOTIONS, "seed": SEED}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    return user_cache_path("revarb") / "avatar" / f"avatar-{digest[:12]}.rgp"


def load_cached_model() -> FittedRGP | None:
    """Load the cached model; None where there is none, or it cannot be read."""
    path = cached_model_path(load_avatar_spec())
    if not path.is_file():
        return None
    try:
        return open_model(path)
    except RevarbError:  # damaged, or written by a newer version: train again
        return None


def train_model() -> FittedRGP:
    """Train a model with the shipped settings; raises KeyboardInterrupt when interrupted."""
    model = load_avatar_spec().fit(load_avatar_records(), seed=SEED, progress=True)
    if model.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return model


def cache_model(model: FittedRGP) -> Path:
    """Save a trained model to the user's cache folder, for `load_cached_model`."""
    path = cached_model_path(model.spec)
    make_folder(path.parent)
    return model.save(path)
