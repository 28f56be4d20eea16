"""One frame of the avatar, ghosts included: the 99th percentile over a minute of walking and running."""

import json
import time
from dataclasses import replace
from typing import Any

import numpy as np

from revarb.config.recipe import R0_FREE, Recipe, Stage
from revarb.motion.avatar.model import load_avatar_records, load_avatar_spec
from revarb.motion.avatar.live_avatar import GHOSTS, LiveAvatar
from revarb.motion.gaits import Gaits

SHARE = 99.0


def row() -> dict[str, Any]:
    """The time does not depend on how well the model was trained: a few steps will do, and no networks."""
    records = load_avatar_records()
    spec = replace(load_avatar_spec(), recognition=None, recipe=Recipe(stages=(Stage(R0_FREE, 5),)))
    player = LiveAvatar(spec.fit(records), Gaits.from_records(records))
    player.follow_preset("step")
    player.tick(GHOSTS)
    seconds = [_frame(player) for _ in range(len(player.presets["step"]))]
    return {"name": "avatar, 99 % of frames within", "n": len(seconds), "seconds": float(np.percentile(seconds, SHARE))}


def _frame(player: LiveAvatar) -> float:
    begin = time.perf_counter()
    player.tick(GHOSTS)
    return time.perf_counter() - begin


if __name__ == "__main__":
    print(json.dumps([row()]))
