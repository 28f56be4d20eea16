"""Where a run begins: after a measured window, against a cold start."""

import numpy as np

from revarb.data.series import Window
from support import small


def test_a_measured_window_beats_a_cold_start(shallow_model):
    record = small.record(7, samples=80)
    window = Window(record.u[:20], record.y[:20])
    warm = shallow_model.simulate(record.u[20:30], start=window)
    cold = shallow_model.simulate(record.u[20:30])
    assert warm.start == "window of 20 samples" and cold.start == "cold" and warm.skip == 0
    error = [np.abs(path.mean[:3] - record.y[20:23]).mean() for path in (warm, cold)]
    assert error[0] < 0.7 * error[1] and warm.std[0] < cold.std[0]


def test_the_outputs_of_a_window_reduce_the_error(shallow_model):
    record = small.record(7, samples=160)
    errors = []
    for begin in range(0, 140, 7):
        seen, next_one = slice(begin, begin + 8), begin + 8
        for y in (record.y[seen], np.full((8, 1), np.nan)):
            path = shallow_model.simulate(record.u[next_one : next_one + 1], start=Window(record.u[seen], y))
            errors.append(float(path.mean[0, 0] - record.y[next_one, 0]) ** 2)
    known, unknown = np.mean(np.reshape(errors, (-1, 2)), axis=0)
    assert known < 0.9 * unknown


def test_a_window_may_have_gaps(shallow_model):
    record = small.record(7)
    y = record.y[:20].copy()
    y[3:6] = np.nan
    path = shallow_model.simulate(record.u[20:], start=Window(record.u[:20], y))
    assert np.isfinite(path.mean).all()
    nothing = shallow_model.simulate(record.u[20:], start=Window(record.u[:20], np.full((20, 1), np.nan)))
    assert (nothing.std[0] > path.std[0]).all()
