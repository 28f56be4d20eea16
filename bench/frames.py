"""Time of one frame of the avatar, sampled runs included: 99th percentile over a minute of walking and running."""

import json
import time
from dataclasses import replace
from typing import Any

import numpy as np

from revarb.models.recipe import R0_FREE, Recipe, Stage
from studies.paper.motion.avatar_model import AVATAR, Gaits
from studies.paper.motion.live_avatar import SAMPLED_RUNS, LiveAvatar

PERCENTILE = 99.0


def measure() -> dict[str, Any]:
    """Time the frames of a hardly trained model without networks: the time does not depend on the training."""
    gaits = Gaits.load()
    spec = replace(AVATAR, recognition=None, recipe=Recipe(stages=(Stage(R0_FREE, 5),)))
    avatar = LiveAvatar(spec.fit(gaits.records), gaits)
    avatar.follow_preset("step")
    avatar.tick(SAMPLED_RUNS)
    seconds = [_time_frame(avatar) for _ in range(len(avatar.presets["step"]))]
    return {
        "name": "avatar, 99 % of frames within",
        "n": len(seconds),
        "seconds": float(np.percentile(seconds, PERCENTILE)),
    }


def _time_frame(avatar: LiveAvatar) -> float:
    begin = time.perf_counter()
    avatar.tick(SAMPLED_RUNS)
    return time.perf_counter() - begin


if __name__ == "__main__":
    print(json.dumps([measure()]))
