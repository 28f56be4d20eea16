"""Time of one frame of the avatar, sampled runs included: 99th percentile over a minute of walking and running."""

import json
import time
from dataclasses import replace
from typing import Any

import numpy as np

from revarb.config.recipe import R0_FREE, Recipe, Stage
from revarb.motion.avatar.live_avatar import GHOSTS, LiveAvatar
from revarb.motion.avatar.model import load_avatar_records, load_avatar_spec
from revarb.motion.gaits import Gaits

PERCENTILE = 99.0


def measure() -> dict[str, Any]:
    """Time the frames of a hardly trained model without networks: the time does not depend on the training."""
    records = load_avatar_records()
    spec = replace(load_avatar_spec(), recognition=None, recipe=Recipe(stages=(Stage(R0_FREE, 5),)))
    avatar = LiveAvatar(spec.fit(records), Gaits.from_records(records))
    avatar.follow_preset("step")
    avatar.tick(GHOSTS)
    seconds = [_time_frame(avatar) for _ in range(len(avatar.presets["step"]))]
    return {
        "name": "avatar, 99 % of frames within",
        "n": len(seconds),
        "seconds": float(np.percentile(seconds, PERCENTILE)),
    }


def _time_frame(avatar: LiveAvatar) -> float:
    begin = time.perf_counter()
    avatar.tick(GHOSTS)
    return time.perf_counter() - begin


if __name__ == "__main__":
    print(json.dumps([measure()]))
