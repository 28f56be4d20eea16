"""What was played, as files that other programs open."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from revarb.data.tables.writing import write_table
from revarb.motion.acclaim import write_motion, write_skeleton
from revarb.motion.avatar.player import Played
from revarb.motion.biovision import write_bvh
from revarb.motion.film import film
from revarb.runtime.files import make_folder, write_atomic

FILM_SECONDS = 20.0  # a film of all that is remembered would take minutes


def export(
    played: Played,
    folder: str | os.PathLike[str],
    name: str,
    film_seconds: float = FILM_SECONDS,
    colours: Sequence[str] | None = None,
) -> list[Path]:
    """Write the motion as BVH, AMC (with its skeleton, ASF) and CSV, and the last seconds of it as a film (GIF).

    `colours` are those of the film, one per frame of the motion.
    """
    motion, target = played.motion(), make_folder(folder)
    body = motion.skeleton
    columns = {"time": played.dt * np.arange(len(played.speeds)), "speed": played.speeds}
    columns |= dict(zip(body.channels, motion.frames.T, strict=True))
    last = slice(-round(film_seconds / played.dt), None)
    moving = film(motion.joints()[last], body, played.dt, "avatar", None if colours is None else colours[last])
    return [
        write_bvh(target / f"{name}.bvh", motion, played.dt),
        write_motion(target / f"{name}.amc", motion),
        write_skeleton(target / f"{name}.asf", body),
        write_table(target / f"{name}.csv", columns),
        write_atomic(target / f"{name}.gif", moving),
    ]
