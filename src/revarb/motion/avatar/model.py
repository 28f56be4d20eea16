"""Which model moves: the user's own file, or the shipped recipe's, trained once and kept in his cache folder."""

import hashlib
import json
import os
import tomllib
from importlib.resources import files
from pathlib import Path

from platformdirs import user_cache_path

from revarb.config.rgp import RGP
from revarb.data.series import Series
from revarb.errors import InputError
from revarb.models.ensemble import Ensemble
from revarb.models.fitted_rgp import FittedRGP
from revarb.models.model_file import load
from revarb.motion import cmu35
from revarb.motion.avatar.body import Body
from revarb.optim.status import Status
from revarb.runtime.files import make_folder

SEED = 0


SLOWEST, FASTEST = 0.2, 1 / 120  # seconds per frame: what can be shown as it happens


def open_model(path: str | os.PathLike[str]) -> FittedRGP:
    """A model file, if its model can move the avatar."""
    model = load(path)
    try:
        return check_model(model)
    except InputError as error:
        raise InputError(f"{path} cannot move the avatar: {error}") from None


def check_model(model: FittedRGP | Ensemble) -> FittedRGP:
    """Refuse what does not turn a speed into postures."""
    if not isinstance(model, FittedRGP):
        raise InputError("it holds several fits; save one of its members by itself")
    if model.input_names != (cmu35.SPEED,):
        raise InputError(f"its only input must be {cmu35.SPEED!r}, but they are {list(model.input_names)}")
    for needed in (cmu35.HEIGHT, HIP):
        if needed not in model.output_names:
            raise InputError(f"its outputs lack {needed!r}; fit it to records of cmu35.controlled")
    Body.of(model.output_names)
    if not FASTEST <= model.dt <= SLOWEST:
        raise InputError(f"its sampling interval must be {FASTEST:.4f} to {SLOWEST} s, but is {model.dt:g} s")
    return model


def kept_path(spec: RGP) -> Path:
    """Where the trained model is kept; another recipe has another place."""
    made_from = {"spec": spec.to_dict(), "motions": cmu35.AVATAR, "seed": SEED}
    digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
    return user_cache_path("revarb") / "avatar" / f"avatar-{digest[:12]}.rgp"


def kept_model() -> FittedRGP | None:
    """The model that was trained here before, if it is there and whole."""
    path = kept_path(avatar_spec())
    if not path.is_file():
        return None
    try:
        return open_model(path)
    except InputError:  # damaged, or of a newer revarb: it is trained anew
        return None


def train_model() -> FittedRGP:
    """Train the shipped recipe on its motions; Ctrl-C ends that with nothing."""
    model = avatar_spec().fit(avatar_records(), seed=SEED, progress=True)
    if model.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return model


def keep_model(model: FittedRGP) -> Path:
    """Put a trained model where `kept_model` finds it."""
    path = kept_path(model.spec)
    make_folder(path.parent)
    return model.save(path)


HIP = "lfemur.rx"


def avatar_spec() -> RGP:
    """The model as it ships with the package: experiments/avatar.toml."""
    return RGP.from_dict(tomllib.loads((files("revarb.motion.avatar") / "avatar.toml").read_text(encoding="utf-8")))


def avatar_records() -> list[Series]:
    """The training motions, walks first."""
    return [cmu35.controlled(number) for number in cmu35.AVATAR]
