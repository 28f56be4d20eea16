"""Export motions of the avatar to files of other programs."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from studies.output import make_folder, write_file
from studies.paper.motion.acclaim import write_motion, write_skeleton
from studies.paper.motion.biovision import write_bvh
from studies.paper.motion.film import render_film
from studies.paper.motion.live_avatar import Recording

FILM_SECONDS = 20.0  # a film of the whole history would take minutes to render


def export_motion(
    recording: Recording,
    folder: str | os.PathLike[str],
    name: str,
    film_seconds: float = FILM_SECONDS,
    colours: Sequence[str] | None = None,
) -> list[Path]:
    """Write a motion as BVH, AMC with its skeleton (ASF), CSV and, its last seconds only, as a film (GIF).

    `colours` has one per frame of the motion. Returns the files that were written.
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
        write_file(target / f"{name}.csv", _encode_csv(columns)),
        write_file(target / f"{name}.gif", film),
    ]


def _encode_csv(columns: Mapping[str, np.ndarray]) -> bytes:
    rows = [",".join(repr(float(value)) for value in row) for row in zip(*columns.values(), strict=True)]
    return "\n".join([",".join(columns), *rows, ""]).encode()
