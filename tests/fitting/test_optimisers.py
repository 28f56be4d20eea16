"""SciPy's L-BFGS-B and the batched L-BFGS: one suite for both, then what only a batch has."""

import os
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from revarb.errors import ComputationError
from revarb.fitting.batched_lbfgs import evaluate_batch, find_direction, maximise_batch
from revarb.fitting.lbfgs import Phase, Settings, maximise
from revarb.models.recipe import Status
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


def island(x, offset, scale):
    """NaN everywhere but at the first start."""
    inside = jnp.all(jnp.abs(x - STARTS[0]) < 1e-12)
    return jnp.where(inside, 5.0, jnp.nan), jnp.ones_like(x)


ALL = np.ones(SIZE, dtype=bool)


def ignore(*said):
    pass


@with_numerics
def run_alone(objective, phases, report=ignore, starts=STARTS, member=0, **options):
    function = jax.jit(objective)

    def evaluate(x):
        bound, gradient = function(x, OFFSETS[member], 100.0)
        return float(bound), np.asarray(gradient)

    return maximise(evaluate, starts[member], phases, SETTINGS, report, **options)


@with_numerics
def run_batch(objective, phases, report=ignore, starts=STARTS, **options):
    return maximise_batch(objective, OFFSETS, 100.0, starts, [phases] * 3, SETTINGS, report, **options)


def run_first(objective, phases, report=ignore, **options):
    """The first member of a batch, with the results of `run_alone`."""
    found = run_batch(objective, phases, lambda member, step: report(step) if member == 0 else None, **options)[0]
    if isinstance(found, ComputationError):
        raise found
    return found


@pytest.fixture(params=[run_alone, run_first], ids=["SciPy", "batched"])
def run(request):
    return request.param


@pytest.mark.parametrize("objective", [valley, valley_with_a_cliff])
def test_the_maximum_is_found_also_beside_a_region_without_values(run, objective):
    found = run(objective, [Phase(ALL, 10), Phase(ALL, 300)])
    assert found.status is Status.CONVERGED and found.bound == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(found.vector[:-1], 1.0, atol=1e-3)


def test_only_free_entries_move_in_each_stage(run):
    free = np.arange(SIZE) < 2
    found = run(valley, [Phase(free, 50)])
    np.testing.assert_array_equal(found.vector[~free], STARTS[0][~free])
    assert np.abs(found.vector - STARTS[0])[free].min() > 0.0
    both = run(valley, [Phase(free, 50), Phase(~free, 50)])
    assert (both.vector != STARTS[0]).all() and both.bound > found.bound


def test_every_iteration_is_reported_limited_and_better(run):
    seen = []
    found = run(valley, [Phase(ALL, 4), Phase(ALL, 7)], seen.append, first_stage=3)
    assert found.status is Status.ITERATION_LIMIT and tuple(seen) == found.history
    assert [step[:2] for step in found.history] == [(3, n) for n in range(1, 5)] + [(4, n) for n in range(1, 8)]
    bounds = [step.bound for step in found.history]
    assert bounds == sorted(bounds) and bounds[-1] == pytest.approx(found.bound)


def test_nan_everywhere_but_at_the_start_keeps_the_start_and_a_start_without_a_value_is_an_error(run):
    found = run(island, [Phase(ALL, 300)])
    assert found.status is Status.NOT_FINITE and found.bound == 5.0
    np.testing.assert_array_equal(found.vector, STARTS[0])
    with pytest.raises(ComputationError, match=r"the bound is -?(nan|inf) at the start of the fit"):
        run(valley, [Phase(ALL, 9)], starts=np.where(np.arange(3)[:, None] == 0, np.nan, STARTS))


def stop(*said):
    raise KeyboardInterrupt


@pytest.mark.parametrize("report", [lambda step: os.kill(os.getpid(), signal.SIGINT), stop], ids=["Ctrl-C", "report"])
def test_an_interrupt_keeps_the_best_so_far(run, report):
    found = run(valley, [Phase(ALL, 10_000)], report)
    assert found.status is Status.INTERRUPTED and found.bound > float(valley(STARTS[0], OFFSETS[0], 100.0)[0])
    with pytest.raises(KeyboardInterrupt):  # before any value it is passed on
        maximise(stop, np.zeros(SIZE), [Phase(ALL, 9)], SETTINGS, ignore)


def test_members_of_a_batch_are_independent():
    """Those of SciPy, member by member; one that starts nowhere leaves the others alone."""
    phases = [Phase(ALL, 300)]
    first, wrong, last = run_batch(valley, phases, starts=np.where(np.arange(3)[:, None] == 1, np.nan, STARTS))
    assert isinstance(wrong, ComputationError)
    for member, found in ((0, first), (2, last)):
        alone = run_alone(valley, phases, member=member)
        np.testing.assert_allclose(found.vector, alone.vector, atol=1e-4)
        assert found.bound == pytest.approx(alone.bound, abs=1e-8)


def test_an_interrupt_stops_all_members_wherever_they_are():
    """One member has converged in the first of two stages: it did not finish either."""

    def stop_late(member, step):
        if member == 0 and step.iteration == 12:
            raise KeyboardInterrupt

    starts = np.stack([STARTS[0], np.full(SIZE, 1.2), STARTS[2]])
    found = run_batch(valley, [Phase(ALL, 300)] * 2, stop_late, starts)
    assert [optimum.status for optimum in found] == [Status.INTERRUPTED] * 3
    assert found[0].history[-1].iteration >= 12


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
def test_every_member_has_its_bound_and_phases_and_all_calls_share_one_program():
    traced = []

    def counted(x, offset, scale):
        traced.append(x)
        return valley(x, offset, scale)

    evaluate_batch(counted, OFFSETS, 100.0, STARTS, SETTINGS, ticks=0)
    before, few, more = len(traced), [Phase(ALL, 3)], [Phase(ALL, 9)]
    found = maximise_batch(counted, OFFSETS, 100.0, STARTS, [few, more, few], SETTINGS, ignore)
    assert [len(optimum.history) for optimum in found] == [3, 9, 3]
    bounds = evaluate_batch(counted, OFFSETS, 100.0, STARTS, SETTINGS)
    assert len(traced) == before > 0
    np.testing.assert_allclose(bounds, [valley(*each, 100.0)[0] for each in zip(STARTS, OFFSETS, strict=True)])
