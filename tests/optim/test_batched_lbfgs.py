"""L-BFGS for a batch, compared with SciPy's on each member."""

import os
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from revarb.errors import ComputationError
from revarb.optim.batched_lbfgs import evaluate_batch, find_direction, maximise_batch, prepare_batch
from revarb.optim.lbfgs import Phase, Settings, maximise
from revarb.optim.status import Status
from revarb.runtime.numerics import with_numerics

SETTINGS = Settings(memory=6, ftol=1e-12, gtol=1e-8)
SIZE = 6
STARTS = np.random.default_rng(0).normal(size=(3, SIZE))
OFFSETS = np.array([1.0, 1.2, 0.9])


def valley(x, offset, scale):
    """Rosenbrock's function, upside down."""

    def bound(x):
        return -jnp.sum(scale * (x[1:] - x[:-1] ** 2) ** 2 + (offset - x[:-1]) ** 2)

    return jax.value_and_grad(bound)(x)


def valley_with_a_cliff(x, offset, scale):
    bound, gradient = valley(x, offset, scale)
    return jnp.where(jnp.max(jnp.abs(x)) > 2.6, jnp.nan, bound), gradient


def all_free(iterations):
    return Phase(np.ones(SIZE, dtype=bool), iterations)


MANY = (all_free(300),)


@with_numerics
def run(objective=valley, phases=MANY, starts=STARTS, report=lambda member, step: None):
    return maximise_batch(objective, OFFSETS, 100.0, starts, [phases] * len(starts), SETTINGS, report)


@with_numerics
def run_alone(objective, member, phases):
    function = jax.jit(objective)

    def evaluate(x):
        bound, gradient = function(x, OFFSETS[member], 100.0)
        return float(bound), np.asarray(gradient)

    return maximise(evaluate, STARTS[member], phases, SETTINGS, lambda step: None)


@pytest.mark.parametrize("objective", [valley, valley_with_a_cliff])
def test_every_member_reaches_the_optimum_of_scipy(objective):
    phases = [all_free(10), all_free(300)]
    for member, found in enumerate(run(objective, phases)):
        alone = run_alone(objective, member, phases)
        assert found.status is Status.CONVERGED
        np.testing.assert_allclose(found.vector, alone.vector, atol=1e-4)
        assert found.bound == pytest.approx(alone.bound, abs=1e-8)


def test_only_free_entries_move():
    free = np.arange(SIZE) < 2
    for found, start in zip(run(phases=[Phase(free, 50)]), STARTS, strict=True):
        np.testing.assert_array_equal(found.vector[~free], start[~free])
        assert np.abs(found.vector[free] - start[free]).min() > 0.0


def test_the_iterations_are_limited_in_every_stage():
    found = run(phases=[all_free(4), all_free(7)])
    assert [optimum.status for optimum in found] == [Status.ITERATION_LIMIT] * 3
    assert all(optimum.history[-1][:2] == (2, 7) for optimum in found)


def test_bounds_never_fall_and_are_reported():
    seen = []
    found = run(report=lambda member, step: seen.append((member, step.bound)))
    for member, optimum in enumerate(found):
        bounds = [bound for number, bound in seen if number == member]
        assert bounds == sorted(bounds) and bounds[-1] == optimum.bound
    assert found[0].bound == pytest.approx(run_alone(valley, 0, [all_free(300)]).bound, abs=1e-8)


def test_a_member_that_starts_nowhere_leaves_the_others_alone():
    starts = STARTS.copy()
    starts[1] = np.nan
    first, wrong, last = run(starts=starts)
    assert isinstance(wrong, ComputationError) and "at the start of the fit" in str(wrong)
    assert first.status is last.status is Status.CONVERGED


def test_a_member_whose_neighbourhood_is_not_finite_ends_there():
    def island(x, offset, scale):
        inside = jnp.all(jnp.abs(x - STARTS[0]) < 1e-12)
        return jnp.where(inside, 0.0, jnp.nan), jnp.ones_like(x)

    found, *_ = run(island)
    assert found.status is Status.NOT_FINITE
    np.testing.assert_array_equal(found.vector, STARTS[0])


def test_ctrl_c_keeps_the_best_points():
    def press(member, step):
        os.kill(os.getpid(), signal.SIGINT)

    found = run(phases=[all_free(10_000)], report=press)
    assert [optimum.status for optimum in found] == [Status.INTERRUPTED] * 3
    assert all(optimum.bound > -1e3 for optimum in found)


def test_a_report_that_raises_stops_all_members_wherever_they_are():
    """One member has converged in the first of two stages: it did not finish either."""

    def stop(member, step):
        if member == 0 and step.iteration == 12:
            raise KeyboardInterrupt

    starts = np.stack([STARTS[0], np.full(SIZE, 1.2), STARTS[2]])
    found = run(phases=[all_free(300), all_free(300)], starts=starts, report=stop)
    assert [optimum.status for optimum in found] == [Status.INTERRUPTED] * 3
    assert found[0].history[-1].iteration >= 12


def test_every_iteration_is_in_the_history():
    for optimum in run(phases=[all_free(25), all_free(30)]):
        steps = [step[:2] for step in optimum.history]
        last = optimum.history[-1].iteration
        assert steps == [(1, n) for n in range(1, 26)] + [(2, n) for n in range(1, last + 1)]


@with_numerics
def test_the_direction_is_that_of_the_two_loops():
    """The recursion of Nocedal and Wright, Algorithm 7.4, with a memory that is not full."""
    rng = np.random.default_rng(1)
    hessian = np.diag(np.arange(1.0, SIZE + 1.0))
    steps, g = rng.normal(size=(3, SIZE)), rng.normal(size=SIZE)
    changes = steps @ hessian
    q, alphas = g.copy(), []
    for s, y in zip(steps[::-1], changes[::-1], strict=True):
        alphas.append(s @ q / (s @ y))
        q = q - alphas[-1] * y
    r = q * (steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
    for s, y, alpha in zip(steps, changes, alphas[::-1], strict=True):
        r = r + s * (alpha - y @ r / (s @ y))
    empty = np.zeros((2, SIZE))
    found = find_direction(np.concatenate([empty, steps]), np.concatenate([empty, changes]), g)
    np.testing.assert_allclose(found, -r, rtol=1e-10)
    np.testing.assert_allclose(find_direction(empty, empty, g), -g)


@with_numerics
def test_bounds_of_all_members():
    bounds = evaluate_batch(valley, OFFSETS, 100.0, STARTS, SETTINGS)
    np.testing.assert_allclose(bounds, [valley(*each, 100.0)[0] for each in zip(STARTS, OFFSETS, strict=True)])


@with_numerics
def test_members_with_phases_of_their_own():
    few, more = [all_free(3)], [all_free(9)]
    found = maximise_batch(valley, OFFSETS, 100.0, STARTS, [few, more, few], SETTINGS, lambda member, step: None)
    assert [len(optimum.history) for optimum in found] == [3, 9, 3]


@with_numerics
def test_all_calls_share_one_program():
    traced = []

    def counted(x, offset, scale):
        traced.append(x)
        return valley(x, offset, scale)

    prepare_batch(counted, OFFSETS, 100.0, STARTS, SETTINGS)
    before = len(traced)
    run(counted, phases=[all_free(30), all_free(30)])
    evaluate_batch(counted, OFFSETS, 100.0, STARTS, SETTINGS)
    assert len(traced) == before > 0
