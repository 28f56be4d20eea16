"""Export motions of the avatar to files of other programs."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from revarb.data.tables.writing import write_table
from revarb.motion.acclaim import write_motion, write_skeleton
from revarb.motion.avatar.live_avatar import Recording
from revarb.motion.biovision import write_bvh
from revarb.motion.film import render_film
from revarb.runtime.files import make_folder, write_atomic

FILM_SECONDS = 20.0  # a film of the whole history would take minutes to render


def export_motion(
    recording: Recording,
    folder: str | os.PathLike[str],
    name: str,
    film_seconds: float = FILM_SECONDS,
    colours: Sequence[str] | None = None,
) -> list[Path]:
    """Write a motion as BVH, AMC with its skeleton (ASF), CSV and, its last seconds only, as a film (GIF).

    Parameters
    ----------
    recording : Recording
        Speeds and model outputs.
    folder : path-like
        Where the files go; created if need be.
    name : str
        Name of the files, without ending.
    film_seconds : float
        Length of the film.
    colours : sequence of str, optional
        Colours of the film, one per frame of the motion.

    Returns
    -------
    list of pathlib.Path
        The files that were written.
    """
    motion, target = recording.motion(), make_folder(folder)
    skeleton = motion.skeleton
    columns = {"time": recording.dt * np.arange(len(recording.speeds)), "speed": recording.speeds}
    columns |= dict(zip(skeleton.channels, motion.frames.T, strict=True))
    last = slice(-round(film_seconds / recording.dt), None)
    film_colours = None if colours is None else colours[last]
    film = render_film(motion.joints()[last], skeleton, recording.dt, "avatar", film_colours)
    return [
        write_bvh(target / f"{name}.bvh", motion, recording.dt),
        write_motion(target / f"{name}.amc", motion),
        write_skeleton(target / f"{name}.asf", skeleton),
        write_table(target / f"{name}.csv", columns),
        write_atomic(target / f"{name}.gif", film),
    ]
