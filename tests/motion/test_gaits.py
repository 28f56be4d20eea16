"""Walking, running, and the speed signals that command them."""

import numpy as np
import pytest

from revarb.motion import cmu35
from revarb.motion.gaits import find_phases, make_speed_signals, move_at_speed
from support.avatars import paper_gaits


@pytest.fixture
def gaits(recorded_data):
    return paper_gaits()


def test_walks_and_runs(gaits):
    assert len(gaits.walks) == len(gaits.runs) == 5
    assert 1.2 < gaits.walking_speed < 1.3 and 3.2 < gaits.running_speed < 3.5


def test_signals_go_from_walking_to_running_and_back(gaits):
    found = make_speed_signals(gaits, cmu35.DT)
    assert list(found) == ["step", "ramp", "sine", "stop and go"]
    assert len(found["step"]) == 1800  # a minute
    phases = find_phases(found["step"], gaits)
    assert [phase.name for phase in phases] == ["walk", "run", "walk"]
    assert [(phase.begin, phase.end) for phase in phases] == [(0, 600), (600, 1200), (1200, 1800)]
    assert np.abs(np.diff(found["ramp"])).max() < 0.01 and np.abs(np.diff(found["sine"])).max() < 0.02
    assert len(make_speed_signals(gaits, cmu35.DT, pace=0.5)["step"]) == 900


def test_the_root_moves_at_the_commanded_speed(gaits):
    walk = gaits.walks[0]
    speeds = np.full(len(walk), 2.0)
    motion = move_at_speed(walk.y, walk.output_names, speeds, cmu35.DT)
    metres = motion.root[:, 2] * motion.skeleton.metres_per_unit
    np.testing.assert_allclose(metres, 2.0 * cmu35.DT * np.arange(len(walk)), rtol=1e-12)
    np.testing.assert_array_equal(motion.root[:, 1], walk.y[:, 0])
