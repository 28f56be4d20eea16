"""Training of the recognition networks."""

from dataclasses import replace

import equinox as eqx
import numpy as np
import pytest

import revarb
from revarb.fitting import networks
from revarb.fitting.networks import _locate_targets, run_adam_rounds
from revarb.models.recipe import Recipe, Recognition, Stage, Status
from revarb.runtime.journal import Journal
from revarb.runtime.numerics import with_numerics
from revarb.variational.bound import revarb_bound
from support import small
from support.recognised import QUICK_NETWORKS, recognised_problem
from support.small_choice import count_calls


def run_rounds(problem, recognition, starts, report=lambda *said: None):
    """The parameters after the rounds of Adam, and what was reported."""
    reported = []

    def note(*said):
        reported.append(said)
        report(*said)

    return run_adam_rounds(problem, recognition, starts, np.random.default_rng(0), note, Journal()), reported


@pytest.mark.slow
def test_training_beats_the_mean():
    """Of two records, one of which has a gap."""
    records = [small.with_gaps(small.record(), slice(20, 25)), small.record(1, samples=40)]
    model, test = small.spec(recognition=QUICK_NETWORKS).fit(records, seed=2), small.record(5)
    assert revarb.scores(model.simulate(test.u, "mean"), test.y).nrmse < 0.5
    assert np.isfinite(model.simulate(test.u, "network").mean).all()
    assert model.status in (Status.ITERATION_LIMIT, Status.CONVERGED)


def bound_of(problem, parameters):
    return float(revarb_bound(parameters, problem.rows, problem.layout))


@pytest.mark.slow
def test_adam_goes_up_and_new_inducing_inputs_follow_the_paths():
    problem, start = recognised_problem()
    problem = problem._replace(spec=replace(problem.spec, recipe=Recipe(stages=(Stage(("mu", "lam"), 1),))))
    after, reported = run_rounds(problem, Recognition(rounds=(100,)), [start])
    assert bound_of(problem, after) > bound_of(problem, start) + 10.0
    assert [steps for steps, _ in reported] == [50, 100]
    np.testing.assert_array_equal(after.layers[0].raw_w, start.layers[0].raw_w)  # not free in this recipe


@pytest.mark.slow
def test_a_report_can_stop_the_training():
    def stop(*said):
        raise KeyboardInterrupt

    problem, start = recognised_problem()
    after, _ = run_rounds(problem, Recognition(rounds=(1000, 1000), starts=2), [start, start], stop)
    assert bound_of(problem, after) > bound_of(problem, start)


@pytest.mark.slow
def test_the_best_of_several_starts_is_trained_further():
    problem, good = recognised_problem()
    bad = eqx.tree_at(lambda start: start.states.networks[0].biases[-1], good, replace_fn=lambda bias: bias + 30.0)
    spec = Recognition(rounds=(100, 50), starts=2)
    found, reported = run_rounds(problem, spec, [bad, good])
    ends = [each.states.networks[0].biases[-1] for each in (found, good)]
    np.testing.assert_allclose(*ends, atol=2.0)  # as far as Adam can move in 150 steps
    assert [steps for steps, _ in reported] == [50, 100, 150, 200, 250] and spec.steps == 250


@pytest.mark.slow
def test_networks_can_start_from_the_free_form_solution(monkeypatch):
    spec = small.spec(recognition=replace(QUICK_NETWORKS, start="free-form"))
    record, test = small.record(), small.record(5)
    seen = count_calls(monkeypatch, networks, "start_networks")
    found, free = spec.fit(record, seed=1), small.spec().fit(record, seed=1)
    np.testing.assert_array_equal(seen[0][2].states.mu[0], free.trained.parameters.states.mu[0])
    assert revarb.scores(found.simulate(test.u, "mean"), test.y).nrmse < 0.5


@with_numerics
def test_interpolated_gaps_are_no_targets_of_the_networks():
    problem = small.problem(small.spec(hidden=1), small.with_gaps(small.record(), slice(20, 30)), small.record(1))
    compared = _locate_targets(problem.rows, problem.layout)
    first = small.spec().order_for(1).first_row
    assert sorted({*range(sum(problem.layout.lengths))} - {*compared.tolist()}) == list(range(20, 30))
    assert problem.layout.lags == first == 2  # so that states and samples are counted alike here
