"""Subject 35 of CMU's motion capture database, as the paper used it: walking and running, 30 frames per second.

"The data used in this project was obtained from mocap.cs.cmu.edu. The database was created with funding from NSF
EIA-0196217." Free for research; it may not be resold, even converted.
"""

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from revarb.data.series import Series, as_matrix
from revarb.errors import InputError
from revarb.motion.acclaim import read_motion, read_skeleton
from revarb.motion.kinematics import Motion, Skeleton
from revarb.runtime.downloads import PublicFile, fetch_file

TRAIN = (1, 2, 3, 4, 17, 18, 19, 20)


TEST = (5, 6, 7, 8, 21, 22, 23, 24)


RUNS = range(17, 27)


STEP = 4  # frames: 120 Hz to 30


DT = STEP / 120.0


ROOT_POSITION = 3  # channels, which the paper drops


FINGERS = {"rfingers.rx": 7.12502, "lfingers.rx": 7.12502}  # degrees, constant in all motions


CLAVICLES = ("rclavicle.ry", "rclavicle.rz", "lclavicle.ry", "lclavicle.rz")  # rounding noise of 1e-14


CONTROL = "ltoes"


HEIGHT = "root.ty"


FORWARD = 2  # the root's z


SPEED = "speed"


AVATAR = (*range(1, 6), *range(17, 22))  # walks and runs of the paper's last experiment


def skeleton() -> Skeleton:
    """The subject's skeleton."""
    return read_skeleton(fetch_file(_public("35.asf")))


def motion(number: int) -> Motion:
    """A motion of the subject by its number in the database, at 30 frames per second."""
    names = _checksums()
    if f"35_{number:02d}.amc" not in names:
        known = sorted(int(name[3:5]) for name in names if name.endswith(".amc"))
        raise InputError(f"subject 35 has no motion {number}; there are {known[0]} to {known[-1]}, without 27")
    return read_motion(fetch_file(_public(f"35_{number:02d}.amc")), skeleton()).every(STEP)


def series(number: int) -> Series:
    """A motion as a record: where the left toes are, seen from the root and along the way, to 57 channels.

    The paper drops the root's position and the two channels that are constant. Four of the 57, the clavicles, are
    rounding noise of the files (`honest` says which columns are not).
    """
    recorded = motion(number)
    joints, names = recorded.joints(), recorded.skeleton.names
    control = joints[:, names.index(CONTROL), 2] - joints[:, 0, 2]
    channels = _modelled(recorded.skeleton)
    return Series(control, _columns(recorded, channels), DT, (f"{CONTROL}.z",), channels)


def controlled(number: int) -> Series:
    """A motion as a record: its average forward speed, in metres per second, to everything but where it goes.

    That is the root's height and attitude, and all joints but those that are constant or rounding noise.
    """
    recorded = motion(number)
    seconds = (len(recorded.frames) - 1) * DT
    speed = float(recorded.root[-1, FORWARD] - recorded.root[0, FORWARD]) * recorded.skeleton.unit / seconds
    channels = (HEIGHT, *(name for name in _modelled(recorded.skeleton) if name not in CLAVICLES))
    return Series(np.full(len(recorded.frames), speed), _columns(recorded, channels), DT, (SPEED,), channels)


def _columns(recorded: Motion, channels: Sequence[str]) -> np.ndarray:
    return recorded.frames[:, [recorded.skeleton.channels.index(name) for name in channels]]


def pose(values: ArrayLike, channels: Sequence[str], root: ArrayLike | None = None) -> Motion:
    """Rows of the channels of `series` or `controlled`, in any order, as a motion of the subject: the way back.

    `root` is its root's position, a row of three per row of `values`; without it the root stays where it is, as on a
    treadmill. A height among the channels goes before that of `root`.
    """
    body, values = skeleton(), as_matrix("values", values)
    _check_channels(channels, _modelled(body), values)
    position = np.zeros((len(values), ROOT_POSITION)) if root is None else as_matrix("root", root)
    if position.shape != (len(values), ROOT_POSITION):
        raise InputError(
            f"root must be [{len(values)}, {ROOT_POSITION}], a row per row of values; received {position.shape}"
        )
    still = FINGERS | dict.fromkeys(CLAVICLES, 0.0)
    columns = {name: np.full(len(values), angle) for name, angle in still.items()}
    columns |= zip(body.channels[:ROOT_POSITION], position.T, strict=True)
    columns |= zip(channels, values.T, strict=True)
    return Motion(body, np.column_stack([columns[name] for name in body.channels]))


def honest(channels: tuple[str, ...]) -> np.ndarray:
    """Which of these channels are more than rounding noise."""
    return np.array([name not in CLAVICLES for name in channels])


def train_and_test() -> tuple[tuple[Series, ...], tuple[Series, ...]]:
    """The paper's split: four walks and four runs each."""
    return tuple(series(number) for number in TRAIN), tuple(series(number) for number in TEST)


def fetch_all() -> Path:
    """Download the skeleton and every motion of the split; the skeleton's path."""
    for number in (*TRAIN, *TEST):
        fetch_file(_public(f"35_{number:02d}.amc"))
    return fetch_file(_public("35.asf"))


def _modelled(body: Skeleton) -> tuple[str, ...]:
    return tuple(name for name in body.channels[ROOT_POSITION:] if name not in FINGERS)


def _check_channels(channels: Sequence[str], wanted: Sequence[str], values: np.ndarray) -> None:
    if values.shape[1] != len(channels):
        raise InputError(f"values has {values.shape[1]} column(s), so it needs as many channels, not {len(channels)}")
    for name in channels:
        if name not in (HEIGHT, *wanted) or list(channels).count(name) > 1:
            raise InputError(f"channels must be those of cmu35.series, each once; {name!r} is none of them or doubled")
    missing = [name for name in wanted if name not in channels and name not in CLAVICLES]
    if missing:
        raise InputError(f"channels lacks {missing[0]!r}; a pose needs all of cmu35.series but the clavicles")


def _public(name: str) -> PublicFile:
    return PublicFile(name, "cmu_mocap_35", f"http://mocap.cs.cmu.edu/subjects/35/{name}", _checksums()[name])


@cache
def _checksums() -> dict[str, str]:
    return tomllib.loads((files("revarb.motion") / "cmu35.toml").read_text(encoding="utf-8"))
