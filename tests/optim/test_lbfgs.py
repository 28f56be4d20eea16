import numpy as np
import pytest

from revarb.errors import ComputationError
from revarb.optim.lbfgs import Phase, Settings, maximise
from revarb.optim.status import Status

SETTINGS = Settings(memory=10, ftol=1e-12, gtol=1e-8)


def bowl(centre):
    def objective(vector):
        return -float(np.sum((vector - centre) ** 2)), -2.0 * (vector - centre)

    return objective


def everything(size, iterations=100):
    return [Phase(np.ones(size, dtype=bool), iterations)]


def ignore(step):
    pass


def test_it_finds_the_maximum_and_reports_convergence():
    centre = np.array([1.0, -2.0, 3.0])
    optimum = maximise(bowl(centre), np.zeros(3), everything(3), SETTINGS, ignore)
    np.testing.assert_allclose(optimum.vector, centre, atol=1e-6)
    assert optimum.status is Status.CONVERGED
    assert optimum.bound == pytest.approx(0.0, abs=1e-10)


def test_only_free_entries_move_in_each_stage():
    centre = np.array([1.0, 2.0])
    first = Phase(np.array([True, False]), 50)
    optimum = maximise(bowl(centre), np.zeros(2), [first], SETTINGS, ignore)
    np.testing.assert_allclose(optimum.vector, [1.0, 0.0], atol=1e-6)
    both = maximise(bowl(centre), np.zeros(2), [first, Phase(np.array([False, True]), 50)], SETTINGS, ignore)
    np.testing.assert_allclose(both.vector, centre, atol=1e-6)
    assert {step.stage for step in both.history} == {1, 2}


def rosenbrock(vector):
    x, y = vector
    value = (1 - x) ** 2 + 100 * (y - x**2) ** 2
    return -value, -np.array([-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)])


def test_stops_at_the_iteration_limit_and_reports_every_iteration():
    seen = []
    optimum = maximise(rosenbrock, np.array([-1.2, 1.0]), everything(2, 5), SETTINGS, seen.append)
    assert optimum.status is Status.ITERATION_LIMIT
    assert len(optimum.history) == 5
    assert tuple(seen) == optimum.history
    bounds = [step.bound for step in optimum.history]
    assert bounds == sorted(bounds)


def test_a_region_without_values_is_backed_off_from():
    """The first step leads into a region of NaN; the maximum is still found."""

    def objective(vector):
        if vector[0] > 3.5:
            return np.nan, np.full(2, np.nan)
        return rosenbrock(vector - np.array([2.0, 0.0]))

    optimum = maximise(objective, np.array([0.5, 2.0]), everything(2, 300), SETTINGS, ignore)
    np.testing.assert_allclose(optimum.vector, [3.0, 1.0], atol=1e-3)


def test_nan_everywhere_but_at_the_start_keeps_the_start():
    start = np.array([1.0, 2.0])

    def objective(vector):
        if np.array_equal(vector, start):
            return 5.0, np.ones(2)
        return np.nan, np.ones(2)

    optimum = maximise(objective, start, everything(2), SETTINGS, ignore)
    assert optimum.status is Status.NOT_FINITE
    np.testing.assert_array_equal(optimum.vector, start)
    assert optimum.bound == 5.0


def test_a_start_without_a_value_is_an_error():
    with pytest.raises(ComputationError, match=r"the bound is nan at the start.*recipe\.jitter"):
        maximise(lambda v: (float("nan"), v), np.zeros(2), everything(2), SETTINGS, ignore)


def test_an_interrupt_keeps_the_best_so_far():
    calls = 0

    def objective(vector):
        nonlocal calls
        calls += 1
        if calls > 6:
            raise KeyboardInterrupt
        return rosenbrock(vector)

    start = np.array([-1.2, 1.0])
    optimum = maximise(objective, start, everything(2), SETTINGS, ignore)
    assert optimum.status is Status.INTERRUPTED
    assert optimum.bound > rosenbrock(start)[0]
    assert rosenbrock(optimum.vector)[0] == optimum.bound


def test_an_interrupt_before_any_value_is_passed_on():
    def objective(vector):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        maximise(objective, np.zeros(2), everything(2), SETTINGS, ignore)
