"""What was played, as files that other programs open."""

import os
from pathlib import Path

import numpy as np

from revarb.avatar.player import Played
from revarb.datasets.mocap import write_bvh, write_motion, write_skeleton
from revarb.files import make_folder, write_whole
from revarb.report.motion_film import film
from revarb.table import write_table

FILM_SECONDS = 20.0  # a film of all that is remembered would take minutes


def export(played: Played, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write the motion as BVH, AMC (with its skeleton, ASF) and CSV, and the last seconds of it as a film (GIF)."""
    motion, target = played.motion(), make_folder(folder)
    body = motion.skeleton
    columns = {"time": played.dt * np.arange(len(played.speeds)), "speed": played.speeds}
    columns |= dict(zip(body.channels, motion.frames.T, strict=True))
    filmed = motion.joints()[-round(FILM_SECONDS / played.dt) :]
    return [
        write_bvh(target / f"{name}.bvh", motion, played.dt),
        write_motion(target / f"{name}.amc", motion),
        write_skeleton(target / f"{name}.asf", body),
        write_table(target / f"{name}.csv", columns),
        write_whole(target / f"{name}.gif", film(filmed, body, played.dt, "avatar")),
    ]
