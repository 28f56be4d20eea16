"""The avatar's control signals and figures."""

import numpy as np
import pytest

from revarb.experiments import avatar
from revarb.motion import cmu35


def test_a_frequency_is_found():
    time = np.arange(300) / 30.0
    signal = 3.0 + 0.2 * time + np.sin(2 * np.pi * 1.4 * time) + 0.3 * np.sin(2 * np.pi * 2.8 * time)
    assert avatar.find_frequency(signal, 1 / 30.0) == pytest.approx(1.4, abs=0.01)


def test_the_shipped_avatar_is_the_papers():
    spec = avatar.load_avatar_spec()
    assert spec.hidden == 1 and spec.recognition.hidden == (500, 200)


def test_walks_and_runs(gaits):
    assert len(gaits.walks) == len(gaits.runs) == 5
    assert 1.2 < gaits.walking_speed < 1.3 and 3.2 < gaits.running_speed < 3.5


def test_signals_go_from_walking_to_running_and_back(gaits):
    found = avatar.make_speed_signals(gaits, cmu35.DT)
    assert list(found) == ["step", "ramp", "sine", "stop and go"]
    assert len(found["step"]) == 1800  # a minute
    assert [phase.name for phase in avatar.phases_of(found["step"], gaits)] == ["walk", "run", "walk"]
    assert [(phase.begin, phase.end) for phase in avatar.phases_of(found["step"], gaits)] == [
        (0, 600), (600, 1200), (1200, 1800),
    ]  # fmt: skip
    assert np.abs(np.diff(found["ramp"])).max() < 0.01 and np.abs(np.diff(found["sine"])).max() < 0.02
    assert len(avatar.make_speed_signals(gaits, cmu35.DT, pace=0.5)["step"]) == 900


def test_training_motions_have_no_figures_to_complain_of(gaits):
    walk = gaits.walks[0]
    found = avatar.measure_motion(walk.y, walk.u[:, 0], gaits, cmu35.DT)
    assert found["range_excess"] == 0.0 and found["jump_ratio"] <= 1.0
    (phase,) = found["phases"]
    assert phase["gait"] == "walk" and phase["settled_after"] == 0.0


def test_what_leaves_the_range_or_jumps_is_seen(gaits):
    walk, run = gaits.walks[0], gaits.runs[0]
    low = np.min([record.y.min(0) for record in (*gaits.walks, *gaits.runs)], axis=0)
    high = np.max([record.y.max(0) for record in (*gaits.walks, *gaits.runs)], axis=0)
    wild = walk.y.copy()
    wild[50, 7] = high[7] + 0.3 * (high[7] - low[7])
    found = avatar.measure_motion(wild, walk.u[:, 0], gaits, cmu35.DT)
    assert found["range_excess"] == pytest.approx(0.3) and found["jump_ratio"] > 2.0
    # Told to walk, he ran for a while first.
    late = np.concatenate([run.y[:30], walk.y[:60]])
    assert avatar.find_settling_time(late, gaits.walks, gaits, cmu35.DT) == pytest.approx(1.0, abs=0.1)


def test_he_goes_as_far_as_he_is_told(gaits):
    walk = gaits.walks[0]
    speeds = np.full(len(walk), 2.0)
    motion = avatar.move_at_speed(walk.y, walk.output_names, speeds, cmu35.DT)
    metres = motion.root[:, 2] * motion.skeleton.metres_per_unit
    np.testing.assert_allclose(metres, 2.0 * cmu35.DT * np.arange(len(walk)), rtol=1e-12)
    np.testing.assert_array_equal(motion.root[:, 1], walk.y[:, 0])
