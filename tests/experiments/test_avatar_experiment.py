"""Measures of the avatar's motions."""

import numpy as np
import pytest

from revarb.experiments import avatar
from revarb.motion import cmu35
from revarb.motion.avatar.model import load_avatar_spec
from support.avatars import paper_gaits


@pytest.fixture
def gaits(recorded_data):
    return paper_gaits()


def test_a_frequency_is_found():
    time = np.arange(300) / 30.0
    signal = 3.0 + 0.2 * time + np.sin(2 * np.pi * 1.4 * time) + 0.3 * np.sin(2 * np.pi * 2.8 * time)
    assert avatar.find_frequency(signal, 1 / 30.0) == pytest.approx(1.4, abs=0.01)


def test_the_shipped_avatar_is_the_papers():
    spec = load_avatar_spec()
    assert spec.hidden == 1 and spec.recognition.hidden == (500, 200)


def test_training_motions_stay_in_their_own_range(gaits):
    walk = gaits.walks[0]
    found = avatar.measure_motion(walk.y, walk.u[:, 0], gaits, cmu35.DT)
    assert found["range_excess"] == 0.0 and found["jump_ratio"] <= 1.0
    (phase,) = found["phases"]
    assert phase["gait"] == "walk" and phase["settled_after"] == 0.0


def test_range_excess_and_jumps_are_measured(gaits):
    walk, run = gaits.walks[0], gaits.runs[0]
    low = np.min([record.y.min(0) for record in (*gaits.walks, *gaits.runs)], axis=0)
    high = np.max([record.y.max(0) for record in (*gaits.walks, *gaits.runs)], axis=0)
    wild = walk.y.copy()
    wild[50, 7] = high[7] + 0.3 * (high[7] - low[7])
    found = avatar.measure_motion(wild, walk.u[:, 0], gaits, cmu35.DT)
    assert found["range_excess"] == pytest.approx(0.3) and found["jump_ratio"] > 2.0
    # A run before the walk that is commanded.
    late = np.concatenate([run.y[:30], walk.y[:60]])
    assert avatar.find_settling_time(late, gaits.walks, gaits, cmu35.DT) == pytest.approx(1.0, abs=0.1)
