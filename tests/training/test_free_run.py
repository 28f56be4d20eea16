"""The free-run term: which rows count, batched runs against single ones, gradients, rising weights, divergence."""

from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest

from revarb.config.recipe import GROUPS, Recipe, Stage
from revarb.data.preprocessor import Preprocessor
from revarb.data.windows import Order
from revarb.optim.journal import Journal
from revarb.optim.lbfgs import Optimum, maximise
from revarb.optim.status import Status, Step
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import Chain
from revarb.simulation.mean import run_mean_cold
from revarb.training.free_run import FreeRuns, cut_cold_runs, cut_runs_from_states, sum_squared_errors
from revarb.training.objective import make_objective, make_penalised_objective, penalised_bound
from revarb.training.problem import mask_missing
from revarb.training.solve import raise_weights
from revarb.variational.bound import Layout, bound_and_means, compute_posteriors, revarb_bound
from revarb.variational.parameters import flatten, get_form, select_entries, unflatten
from support import oracles, small
from support.random_models import JITTER, L, random_parameters, random_rows

QUICK = Stage(("mu", "zeta", "w", "linear"), 4)


def records():
    """Two records of different lengths and two outputs with different gaps."""
    first = small.with_gaps(small.record(0, samples=30, outputs=2), (slice(9, 12), 0), (20, slice(None)))
    return [first, small.with_gaps(small.record(1, samples=21, outputs=2), (slice(15, 18), 1))]


@pytest.fixture(scope="module")
def problem():
    """A fit of both, before its first step, with a free-run term; more input lags than state lags."""
    recipe = Recipe(stages=(QUICK,), free_run_weight=3.0, free_run_iterations=4, zeta_noise=0.3)
    spec = small.spec(hidden=2, lags=2, input_lags=4, inducing=6, linear=True, recipe=recipe)
    return with_numerics(small.problem)(spec, *records())


@pytest.fixture(scope="module")
def known(problem):
    return with_numerics(jax.jit(bound_and_means, static_argnums=2))(problem.start, problem.rows, problem.layout)


def test_bound_and_means_are_those_of_the_bound_and_the_posteriors(problem, known):
    bound = jax.jit(revarb_bound, static_argnums=2)(problem.start, problem.rows, problem.layout)
    assert float(known.bound) == pytest.approx(float(bound), rel=1e-13)
    posteriors = jax.jit(compute_posteriors, static_argnums=2)(problem.start, problem.rows, problem.layout)
    for mean, posterior in zip(known.means, posteriors, strict=True):
        x = np.random.default_rng(0).normal(size=(4, mean.zeta.shape[1]))
        np.testing.assert_allclose(mean.mean(x), posterior.mean(x), rtol=1e-9, atol=1e-10)


def test_cold_runs_count_what_the_scores_count(problem):
    """Measured outputs from sample `skip` on; not the transient, not the gaps, not the padding of a short record."""
    prep, runs = problem.preprocessor, cut_cold_runs(problem.preprocessor, records())
    reach, skip = prep.order.reach, prep.skip
    assert (reach, skip) == (4, 6) and runs.windows is None
    for k, record in enumerate(records()):
        rows = len(record) - reach
        expected = np.isfinite(record.y[reach:]) & (np.arange(reach, len(record)) >= skip)[:, None]
        np.testing.assert_array_equal(runs.counted[:rows, k], expected)
        assert not runs.counted[rows:, k].any()
        np.testing.assert_array_equal(runs.y[:rows, k][expected], prep.scaling.outputs(record.y)[reach:][expected])
    assert np.isfinite(runs.y).all()


def chain_of(means, lags):
    return Chain(tuple(means[:-1]), means[-1], lags)


def test_batched_cold_runs_are_single_ones(problem, known):
    got = jax.jit(sum_squared_errors, static_argnums=3)(known.means, known.states, problem.runs, 2)
    chain, prep, expected = chain_of(known.means, 2), problem.preprocessor, 0.0
    for record in records():
        run = np.asarray(run_mean_cold(chain, prep.order, prep.scaling.inputs(record.u)))
        expected += np.nansum((run - prep.scaling.outputs(record.y))[prep.skip :] ** 2)
    assert float(got) == pytest.approx(expected, rel=1e-10)
    padded = problem.runs._replace(y=np.where(problem.runs.counted, problem.runs.y, 1e6))
    again = jax.jit(sum_squared_errors, static_argnums=3)(known.means, known.states, padded, 2)
    assert float(again) == float(got)


def run_loop(means, windows, u_bar):
    """A mean-only run by hand: `windows` are the lists of states of each layer, newest first."""
    outputs = []
    for now in u_bar:
        side = now
        for h, layer in enumerate(means[:-1]):
            new = np.asarray(layer.mean(np.concatenate([*windows[h], side])[None]))[0]
            windows[h] = [new, *windows[h][:-1]]
            side = np.concatenate(windows[h])
        outputs.append(np.asarray(means[-1].mean(side[None]))[0])
    return np.array(outputs)


def test_runs_from_latent_means_by_a_loop(problem, known):
    """Runs of seven rows one after the other: from the L latent means before each, every row of every record once."""
    prep, runs = problem.preprocessor, cut_runs_from_states(problem.preprocessor, records(), 7)
    got = jax.jit(sum_squared_errors, static_argnums=3)(known.means, known.states, runs, 2)
    assert runs.y.shape == (7, 4 + 3, 2) and int(runs.counted.sum()) == int(problem.rows.measured.sum())
    expected, first = 0.0, 0
    for block, length in zip(prep.blocks(records()), problem.layout.lengths, strict=True):
        states = [np.asarray(mu)[first : first + length] for mu in known.states.mu]
        for begin in range(0, len(block.u_bar), 7):
            windows = [[mu[begin + 1], mu[begin]] for mu in states]
            run = run_loop(known.means, windows, block.u_bar[begin : begin + 7])
            expected += np.nansum((run - block.y[2 + begin : 2 + begin + 7]) ** 2)
        first += length
    assert float(got) == pytest.approx(expected, rel=1e-9)


def test_a_record_without_inputs_has_runs():
    record = small.record(inputs=0)
    prep = Preprocessor.from_records([record], Order(2, 0, 1))
    assert cut_cold_runs(prep, [record]).u_bar.shape == (60, 1, 0)
    assert cut_runs_from_states(prep, [record], 100).y.shape == (58, 1, 1)


def random_problem(rng, start):
    """Random parameters with linear parts; two records, two outputs with different gaps; cold runs or from states."""
    lengths = (6, 5)
    parameters = random_parameters(rng, lengths, M=3, linear=2)
    parameters = eqx.tree_at(lambda tree: [layer.raw_sigma2 for layer in tree.layers], parameters, [np.array(0.5)] * 3)
    rows = random_rows(rng, lengths)
    y = rows.y.copy()
    y[2, 0] = np.nan
    rows, layout = mask_missing(rows._replace(y=y), Layout(L, lengths, JITTER))
    windows = None if start == "cold" else np.array([[1, 0], [3, 2], [7, 6]])
    count = 2 if windows is None else 3
    counted = rng.random(size=(4, count, 2)) < 0.7
    return (
        parameters,
        rows,
        FreeRuns(rng.normal(size=(4, count, L)), rng.normal(size=(4, count, 2)), counted, windows),
        layout,
    )


@pytest.mark.parametrize("start", ["cold", "states"])
def test_gradient_agrees_with_finite_differences_in_every_group(rng, start):
    """Three random directions and one entry in every group of parameters, with a weight that makes the term large."""
    parameters, rows, runs, layout = random_problem(rng, start)
    form, vector = get_form(parameters), np.array(flatten(parameters))

    @jax.jit
    def value_and_grad(vector):
        return jax.value_and_grad(lambda v: penalised_bound(unflatten(v, form), rows, runs, 20.0, layout))(vector)

    value, gradient = value_and_grad(vector)
    plain = revarb_bound(parameters, rows, layout)
    assert float(plain) - float(value) > 20.0  # the term is no small part
    for group in GROUPS:
        entries = np.flatnonzero(select_entries(parameters, (group,)))
        assert np.abs(np.asarray(gradient)[entries]).max() > 1e-3, group
        directions = [np.zeros_like(vector) for _ in range(4)]
        for direction in directions[:3]:
            direction[entries] = rng.normal(size=len(entries))
        directions[3][rng.choice(entries)] = 1.0
        for direction in directions:
            numeric = oracles.finite_difference(
                lambda t, along=direction: float(value_and_grad(vector + t[0] * along)[0]), np.zeros(1), 0, step=1e-4
            )
            assert float(gradient @ direction) == pytest.approx(numeric, rel=1e-6, abs=1e-6), group


def test_the_objective_is_the_bound_minus_the_weighted_errors(problem, known):
    vector = np.array(flatten(problem.start))
    errors = float(sum_squared_errors(known.means, known.states, problem.runs, 2))
    for weight in (0.0, 2.5):
        value, gradient = make_penalised_objective(problem, problem.runs, weight)(vector)
        assert value == pytest.approx(float(known.bound) - weight * errors, rel=1e-12)
        if weight == 0.0:
            np.testing.assert_allclose(gradient, make_objective(problem)(vector)[1], rtol=1e-8, atol=1e-8)


def test_weights_rise_to_the_last_one():
    assert Recipe(free_run_weight=10).free_run_weights == (1.0, 2.0, 5.0, 10.0)
    assert Recipe(free_run_weight=0.5).free_run_weights == (0.5,)
    assert Recipe(free_run_weight=300).free_run_weights[-2:] == (100.0, 300.0)
    assert Recipe().free_run_weights == ()
    assert Recipe(free_run_weight=2, free_run_iterations=7).iterations == (50, 100, 7, 7)


@pytest.fixture(scope="module")
def fits():
    """The same fit without the term, with it from cold starts, and from the latent means."""
    recipe = Recipe(stages=(Stage(("mu", "lam", "zeta", "w"), 6),), free_run_iterations=5)
    base, record = small.spec(hidden=1, inducing=8, recipe=recipe), small.record()
    changes = {"without": {}, "cold": {"free_run_weight": 2.0}, "states": {"free_run_weight": 2.0, "free_run": 9}}
    return {name: replace(base, recipe=replace(recipe, **change)).fit(record) for name, change in changes.items()}


def test_stages_continue_and_the_bound_is_without_the_term(fits):
    without, cold = fits["without"], fits["cold"]
    assert cold.history[: len(without.history)] == without.history
    assert sorted({step.stage for step in cold.history}) == [1, 2, 3]
    starts = [step.iteration for step in cold.history if step.iteration == 1]
    assert len(starts) == 3 and cold.status is Status.ITERATION_LIMIT
    problem = with_numerics(small.problem)(cold.spec, small.record())
    bound, _ = with_numerics(make_objective(problem))(np.array(flatten(cold.trained.parameters)))
    assert cold.bound == pytest.approx(bound, rel=1e-12)
    assert cold.history[-1].bound < cold.bound  # the steps have the objective with the term


@pytest.mark.parametrize("start", ["cold", "states"])
def test_the_term_makes_the_free_run_better(fits, start):
    record, errors = small.record(), {}
    for name in ("without", start):
        path = fits[name].simulate(record.u, method="mean")
        errors[name] = np.sum((path.mean - record.y)[path.skip :] ** 2)
    assert errors[start] < 0.8 * errors["without"]


def test_without_a_weight_the_settings_of_the_term_change_nothing(fits):
    without = fits["without"]
    recipe = replace(without.spec.recipe, free_run=5, free_run_iterations=99)
    again = replace(without.spec, recipe=recipe).fit(small.record())
    assert (again.bound, again.history) == (without.bound, without.history)
    for ours, theirs in zip(jax.tree.leaves(again.trained), jax.tree.leaves(without.trained), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_run_that_diverges_at_the_start_keeps_the_model_without_the_term():
    """A linear part that grows a thousandfold in every step, and a long record: the runs overflow."""
    recipe = Recipe(stages=(Stage(("w",), 1),), free_run_weight=2.0)
    problem = with_numerics(small.problem)(
        small.spec(hidden=1, inducing=5, linear=True, recipe=recipe), small.record(samples=200)
    )
    unstable = eqx.tree_at(lambda tree: tree.layers[0].linear.offset, problem.start, np.array([1.0]))
    unstable = eqx.tree_at(lambda tree: tree.layers[0].linear.coefficients, unstable, np.full((4, 1), 1e3))
    vector = np.array(flatten(unstable))
    before = Optimum(vector, -7.0, Status.CONVERGED, (Step(1, 1, -7.0),))
    reached = list(with_numerics(raise_weights)(problem, before, "fit", lambda steps, text: None, Journal()))
    assert [(weight, each.status) for weight, each in reached] == [(1.0, Status.NOT_FINITE)]
    np.testing.assert_array_equal(reached[0][1].vector, vector)
    assert (reached[0][1].bound, reached[0][1].history) == (before.bound, before.history)


def test_a_step_that_diverges_backs_off():
    """A stable start whose first step along the gradient would diverge: every accepted point has finite errors."""
    recipe = Recipe(stages=(Stage(("linear",), 6),), free_run_weight=1e4)
    problem = with_numerics(small.problem)(
        small.spec(hidden=1, inducing=5, linear=True, recipe=recipe), small.record(samples=400)
    )
    objective, values = with_numerics(make_penalised_objective(problem, problem.runs, 1e4)), []

    def watched(vector):
        value, gradient = objective(vector)
        values.append(value)
        return value, gradient

    start = np.array(flatten(problem.start))
    start[select_entries(problem.start, ("linear",))] *= 1.04  # nearly unstable
    plan = [(select_entries(problem.start, ("linear",)), 6)]
    from revarb.optim.lbfgs import DEFAULT_SETTINGS, Phase

    best = maximise(watched, start, [Phase(*each) for each in plan], DEFAULT_SETTINGS, lambda step: None)
    assert np.isfinite(best.bound) and best.bound > values[0]
    assert np.isfinite(best.vector).all()
    print("values", values)


def test_interrupted_fits_do_not_go_on(problem):
    for status in (Status.INTERRUPTED, Status.NOT_FINITE):
        stopped = Optimum(np.array(flatten(problem.start)), -3.0, status, ())
        assert list(raise_weights(problem, stopped, "fit", lambda steps, text: None, Journal())) == []
