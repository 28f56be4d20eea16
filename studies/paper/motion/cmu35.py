"""Walking and running of subject 35 of CMU's motion capture database, as the paper used them: 30 frames per second.

"The data used in this project was obtained from mocap.cs.cmu.edu. The database was created with funding from NSF
EIA-0196217." Free for research; it may not be resold, even converted.
"""

import os
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pooch
from jaxtyping import Bool, Float64

from revarb import InputError, Series
from studies.paper.motion.kinematics import Motion, Skeleton
from studies.paper.motion.motion_files import read_motion, read_skeleton

ADDRESS = "http://mocap.cs.cmu.edu/subjects/35/"

# Numbers of the motions in the database.
TRAIN = (1, 2, 3, 4, 17, 18, 19, 20)
TEST = (5, 6, 7, 8, 21, 22, 23, 24)
RUNS = range(17, 27)
AVATAR_MOTIONS = (*range(1, 6), *range(17, 22))  # the walks and runs of the paper's last experiment

STEP = 4  # frames: from 120 Hz to 30 Hz
DT = STEP / 120.0

ROOT_POSITION = 3  # number of channels with the root's position, which the paper drops
FINGERS = {"rfingers.rx": 7.12502, "lfingers.rx": 7.12502}  # degrees, constant in all motions
CLAVICLES = ("rclavicle.ry", "rclavicle.rz", "lclavicle.ry", "lclavicle.rz")  # rounding noise of 1e-14
CONTROL = "ltoes"
HEIGHT = "root.ty"
FORWARD = 2  # index of z in the root's position
SPEED = "speed"


def load_skeleton() -> Skeleton:
    """Load the subject's skeleton."""
    return read_skeleton(_fetch("35.asf"))


def load_motion(number: int) -> Motion:
    """Load a motion by its number, at 30 frames per second: 1 to 16 and 28 to 34 are walks, 17 to 26 runs."""
    names = _checksums()
    if f"35_{number:02d}.amc" not in names:
        known = sorted(int(name[3:5]) for name in names if name.endswith(".amc"))
        raise InputError(f"subject 35 has no motion {number}; there are {known[0]} to {known[-1]}, without 27")
    recorded = read_motion(_fetch(f"35_{number:02d}.amc"), load_skeleton())
    return Motion(recorded.skeleton, recorded.frames[::STEP])


def load_series(number: int) -> Series:
    """Load a motion as a record of Table 2: from the forward position of the left toes to 57 channels.

    The position is relative to the root, along the walk. The outputs are all channels but the root's position and the
    two that are constant, as in the paper; four of them are rounding noise of the files (`is_informative`).
    """
    recorded = load_motion(number)
    joints, names = recorded.joints(), recorded.skeleton.names
    control = joints[:, names.index(CONTROL), 2] - joints[:, 0, 2]
    channels = _modelled_channels(recorded.skeleton)
    return Series(control, _columns(recorded, channels), DT, (f"{CONTROL}.z",), channels)


def load_speed_series(number: int) -> Series:
    """Load a motion as a record of the avatar: from its average forward speed (m/s), which is constant, to its posture.

    The outputs are the root's height and attitude, and all joints but those that are constant or rounding noise.
    """
    recorded = load_motion(number)
    seconds = (len(recorded.frames) - 1) * DT
    distance = float(recorded.root[-1, FORWARD] - recorded.root[0, FORWARD])
    speed = distance * recorded.skeleton.metres_per_unit / seconds
    channels = (HEIGHT, *(name for name in _modelled_channels(recorded.skeleton) if name not in CLAVICLES))
    return Series(np.full(len(recorded.frames), speed), _columns(recorded, channels), DT, (SPEED,), channels)


def _columns(recorded: Motion, channels: Sequence[str]) -> np.ndarray:
    return recorded.frames[:, [recorded.skeleton.channels.index(name) for name in channels]]


def to_motion(
    values: Float64[np.ndarray, "T D"], channels: Sequence[str], root: Float64[np.ndarray, "T 3"] | None = None
) -> Motion:
    """Convert outputs of `load_series` or `load_speed_series`, measured or simulated, to a motion of the subject.

    The channels may be in any order, and the clavicles may be missing. Without `root`, the position of the root in the
    skeleton's units, it stays at the origin; a height among the channels takes precedence.
    """
    body = load_skeleton()
    _check_channels(channels, _modelled_channels(body), values)
    position = np.zeros((len(values), ROOT_POSITION)) if root is None else root
    if position.shape != (len(values), ROOT_POSITION):
        raise InputError(
            f"root must be [{len(values)}, {ROOT_POSITION}], one row per row of values; received {position.shape}"
        )
    constants = FINGERS | dict.fromkeys(CLAVICLES, 0.0)
    columns = {name: np.full(len(values), angle) for name, angle in constants.items()}
    columns |= zip(body.channels[:ROOT_POSITION], position.T, strict=True)
    columns |= zip(channels, values.T, strict=True)
    return Motion(body, np.column_stack([columns[name] for name in body.channels]))


def is_informative(channels: Sequence[str]) -> Bool[np.ndarray, " D"]:
    """Mark the channels that are more than rounding noise: all but the four of the clavicles."""
    return np.array([name not in CLAVICLES for name in channels])


def load_split() -> tuple[tuple[Series, ...], tuple[Series, ...]]:
    """Load the paper's training and test records: four walks and four runs each."""
    return tuple(load_series(number) for number in TRAIN), tuple(load_series(number) for number in TEST)


def _modelled_channels(body: Skeleton) -> tuple[str, ...]:
    return tuple(name for name in body.channels[ROOT_POSITION:] if name not in FINGERS)


def _check_channels(channels: Sequence[str], wanted: Sequence[str], values: np.ndarray) -> None:
    if values.shape[1] != len(channels):
        raise InputError(f"values has {values.shape[1]} column(s), so it needs as many channels, not {len(channels)}")
    for name in channels:
        if name not in (HEIGHT, *wanted) or list(channels).count(name) > 1:
            raise InputError(f"channels must be those of cmu35.load_series, each once; {name!r} is unknown or repeated")
    missing = [name for name in wanted if name not in channels and name not in CLAVICLES]
    if missing:
        raise InputError(f"channels lacks {missing[0]!r}; a pose needs all of cmu35.load_series but the clavicles")


def _fetch(name: str) -> Path:
    # From the folder REVARB_DATA alone if it is set, as all data of revarb; otherwise downloaded once.
    sha256, folder = _checksums()[name], os.environ.get("REVARB_DATA")
    if folder:
        paths = [Path(folder) / "cmu_mocap_35" / name, Path(folder) / name]
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            raise InputError(
                f"REVARB_DATA is set, but there is no {paths[0]}; put the file there or unset the variable"
            )
        if pooch.file_hash(str(path), alg="sha256") != sha256:
            raise InputError(f"{path} is not the published file: its sha256 differs; fetch it again")
        return path
    pooch.get_logger().setLevel("WARNING")
    try:
        return Path(pooch.retrieve(ADDRESS + name, f"sha256:{sha256}", fname=name, path=pooch.os_cache("revarb")))
    except (OSError, ValueError) as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise InputError(f"cannot download {name} ({reason}); put it into a folder and set REVARB_DATA to it") from None


@cache
def _checksums() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
