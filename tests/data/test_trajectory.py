import numpy as np
import pytest

from revarb.data.trajectory import MAX_DISAGREEMENT, Trajectory
from revarb.errors import InputError


def make_trajectory(mean, std=None, skip=0):
    mean = np.asarray(mean, dtype=float)
    names = tuple(f"y{column}" for column in range(mean.shape[1]))
    return Trajectory(
        mean, None if std is None else np.broadcast_to(float(std), mean.shape).copy(), "test", skip, names
    )


def test_intervals():
    lower, upper = make_trajectory(np.zeros((2, 1)), std=2.0).interval(0.95)
    np.testing.assert_allclose(upper - lower, 2 * 1.959963984540054 * 2.0)
    with pytest.raises(InputError, match="level must be between 0 and 1, received 95"):
        make_trajectory(np.zeros((2, 1)), std=2.0).interval(95)


def test_the_warning_begins_above_the_threshold():
    def path(disagreement):
        return Trajectory(np.zeros((3, 1)), None, "samples", 0, ("y",), disagreement=disagreement)

    limit = MAX_DISAGREEMENT
    assert path(None).warning is None and path(limit).warning is None
    assert "0.26 standard deviations" in path(limit + 0.01).warning
    assert "nan" in path(float("nan")).warning, "moments that are no numbers disagree"
