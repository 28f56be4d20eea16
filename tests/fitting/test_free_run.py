"""The free-run term: which rows count, batched runs against single ones, gradients, rising weights, divergence.

One small problem for all tests, since most of the time goes into compiling its objective: a linear part, two records of
different lengths, two outputs with different gaps, more input lags than state lags.
"""

from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest

from revarb.fitting.free_run import cut_runs_from_states, run_from_rest, sum_squared_errors
from revarb.fitting.objective import make_objective
from revarb.fitting.weight_path import _compute_posteriors, optimise_alone
from revarb.gp.layer import Linear
from revarb.gp.posterior import PosteriorMean
from revarb.models.recipe import GROUPS, WEIGHTS, Recipe, Stage, Status
from revarb.runtime.journal import Journal
from revarb.simulation.chain import Chain
from revarb.variational.parameters import flatten, get_form, select_entries, unflatten
from revarb.variational.states import FreeStates
from support import oracles, small

STEPS = 7  # of the runs from latent means
RECIPE = Recipe(
    stages=(Stage(("mu", "lam", "zeta", "w", "linear"), 6),), zeta_noise=0.3, lengthscale_factor=0.7,
    free_run_weight=1.5 * WEIGHTS[0], free_run_iterations=5,  # in two stages
    jitter=1e-3,  # a well-conditioned K_z, so that rounding does not limit the finite differences
)  # fmt: skip
SPEC = small.spec(hidden=1, lags=2, input_lags=4, inducing=6, linear=True, recipe=RECIPE)
errors_of = jax.jit(sum_squared_errors, static_argnums=3)


def make_records():
    first = small.with_gaps(small.record(0, samples=30, outputs=2), (slice(9, 12), 0), (20, slice(None)))
    return [first, small.with_gaps(small.record(1, samples=21, outputs=2), (slice(15, 18), 1))]


@pytest.fixture(scope="module")
def problem():
    """The fit before its first step."""
    return small.problem(SPEC, *make_records())


@pytest.fixture(scope="module")
def runs_from_states(problem):
    return cut_runs_from_states(problem.preprocessor, make_records(), STEPS)


@pytest.fixture(scope="module")
def vector(problem):
    """All parameters, moved away from the start values at random."""
    start = np.array(flatten(problem.start))
    return start + 0.1 * np.random.default_rng(0).normal(size=len(start))


@pytest.fixture(scope="module")
def means(problem):
    """Posterior means at the start values."""
    posteriors = _compute_posteriors(problem.start, problem.rows, layout=problem.layout)
    return tuple(PosteriorMean(each.zeta, each.w, each.variance, each.beta, each.linear) for each in posteriors)


def test_cold_runs_count_what_the_scores_count(problem):
    """Measured outputs from sample `skip` on; not the transient, not the gaps, not the padding of a short record."""
    prep, runs = problem.preprocessor, problem.runs
    reach, skip = prep.order.reach, prep.skip
    assert (reach, skip) == (4, 6) and runs.windows is None and runs.y.shape == (26, 2, 2)
    for k, record in enumerate(make_records()):
        rows = len(record) - reach
        expected = np.isfinite(record.y[reach:]) & (np.arange(reach, len(record)) >= skip)[:, None]
        np.testing.assert_array_equal(runs.weights[:rows, k], expected)
        assert not runs.weights[rows:, k].any()
        np.testing.assert_array_equal(runs.y[:rows, k][expected], prep.scaling.outputs(record.y)[reach:][expected])
    assert np.isfinite(runs.y).all()


def test_batched_cold_runs_are_single_ones(problem, means):
    got = float(errors_of(means, problem.start.states, problem.runs, 2))
    chain, prep, expected = Chain(means[:-1], means[-1], 2), problem.preprocessor, 0.0
    for record in make_records():
        run = np.asarray(run_from_rest(chain, prep, prep.scaling.inputs(record.u)))
        expected += np.nansum((run - prep.scaling.outputs(record.y))[prep.skip :] ** 2)
    assert got == pytest.approx(expected, rel=1e-10)
    uncounted = problem.runs._replace(y=np.where(problem.runs.weights > 0.0, problem.runs.y, 1e6))
    assert float(errors_of(means, problem.start.states, uncounted, 2)) == got


def test_runs_from_states_cover_every_measured_row_once(problem, runs_from_states):
    assert runs_from_states.y.shape == (STEPS, 4 + 3, 2)
    measured = sum(np.isfinite(record.y[problem.preprocessor.order.first_row :]).sum() for record in make_records())
    assert runs_from_states.weights.sum() == measured
    # The second record's states follow the 28 of the first; the first run starts after its two initial states.
    np.testing.assert_array_equal(runs_from_states.windows[[0, 1, 4, 5]], [[1, 0], [8, 7], [29, 28], [36, 35]])


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


def test_runs_from_latent_means_by_a_loop(problem, runs_from_states, rng):
    """Two hidden layers with two states and one: every run starts at the latent means before it."""
    sizes, dims = [2 * 2 + 4, 2 + 2 * 2, 2], [2, 1, 2]
    means = tuple(
        PosteriorMean(rng.normal(size=(3, size)), np.full(size, 0.2), np.array(0.9), rng.normal(size=(3, dim)),
                      Linear(0.2 * rng.normal(size=(size, dim)), rng.normal(size=dim)))
        for size, dim in zip(sizes, dims, strict=True)
    )  # fmt: skip
    lengths = problem.layout.lengths
    mu = tuple(rng.normal(size=(sum(lengths), dim)) for dim in dims[:-1])
    got = errors_of(means, FreeStates(mu, mu), runs_from_states, 2)
    expected, first = 0.0, 0
    for block, length in zip(problem.preprocessor.scale_records(make_records()), lengths, strict=True):
        states = [each[first : first + length] for each in mu]
        for begin in range(0, len(block.u_bar), STEPS):
            windows = [[each[begin + 1], each[begin]] for each in states]
            run = run_loop(means, windows, block.u_bar[begin : begin + STEPS])
            expected += np.nansum((run - block.y[2 + begin : 2 + begin + STEPS]) ** 2)
        first += length
    assert float(got) == pytest.approx(expected, rel=1e-10)


@pytest.mark.slow
def test_the_objective_is_the_bound_minus_the_weighted_errors(problem, means):
    """The bound and the runs come from sums that both share: here from the bound and the posteriors, one by one."""
    start = np.array(flatten(problem.start))
    bound, slope = make_objective(problem)(start)
    errors = float(errors_of(means, problem.start.states, problem.runs, 2))
    assert errors > 1.0
    for weight in (0.0, 2.5):
        value, _ = make_objective(problem, problem.runs, weight)(start)
        assert value == pytest.approx(bound - weight * errors, rel=1e-10)
    # A linear part that grows 10¹²-fold in every step: without weight the runs do no harm, although 0 · ∞ is NaN.
    diverging = set_coefficients(problem, 1e12)
    assert not np.isfinite(make_objective(problem, problem.runs, 1e-3)(diverging)[0])
    for vector, tolerance in ((start, 1e-8), (diverging, 1e-6)):
        bound, slope = make_objective(problem)(vector)
        value, gradient = make_objective(problem, problem.runs, 0.0)(vector)
        assert value == pytest.approx(bound, rel=1e-10)
        np.testing.assert_allclose(gradient, slope, rtol=tolerance, atol=1e-8 * np.abs(slope).max())


def test_gradient_agrees_with_finite_differences_in_every_group(problem, vector, rng):
    """Two random directions and one entry in every group of parameters, with a weight that makes the term large."""
    objective = make_objective(problem, problem.runs, 20.0)
    _, gradient = objective(vector)
    changed = gradient - make_objective(problem)(vector)[1]
    for group in (each for each in GROUPS if each not in ("tau", "nu")):  # its noise is Gaussian
        entries = np.flatnonzero(select_entries(problem.start, (group,)))
        moves = np.abs(changed[entries]).max()  # the prior of the initial states is not in the term
        assert moves < 1e-8 if group == "prior" else moves > 0.1, group
        directions = np.zeros((3, len(vector)))
        directions[:2, entries] = rng.normal(size=(2, len(entries))) / np.sqrt(len(entries))
        directions[2, rng.choice(entries)] = 1.0
        for direction in directions:
            numeric = oracles.finite_difference(
                lambda t, along=direction: objective(vector + t[0] * along)[0], np.zeros(1), 0, step=1e-3
            )
            assert float(gradient @ direction) == pytest.approx(numeric, rel=1e-6, abs=1e-5), group


def test_weights_rise_to_the_last_one():
    weights = Recipe(free_run_weight=10).free_run_weights
    assert weights == (*(weight for weight in WEIGHTS if weight < 10.0), 10.0) == tuple(sorted(set(weights)))
    assert Recipe(free_run_weight=0.5 * WEIGHTS[0]).free_run_weights == (0.5 * WEIGHTS[0],)
    assert Recipe(free_run_weight=300).free_run_weights == (*WEIGHTS, 300.0)
    assert Recipe().free_run_weights == ()
    assert Recipe(free_run_weight=1.5 * WEIGHTS[0], free_run_iterations=7).iterations == (50, 100, 7, 7)


@pytest.fixture(scope="module")
def fits():
    """The same fit without the term, with it from cold starts, and from the latent means."""
    changes = {"without": {"free_run_weight": 0.0}, "cold": {}, "states": {"free_run": STEPS}}
    specs = {name: replace(SPEC, recipe=replace(RECIPE, **change)) for name, change in changes.items()}
    return {name: spec.fit(make_records()) for name, spec in specs.items()}


def test_stages_continue_and_the_bound_is_without_the_term(fits, problem):
    without, cold = fits["without"], fits["cold"]
    assert cold.history[: len(without.history)] == without.history and cold.status is Status.ITERATION_LIMIT
    assert [step.stage for step in cold.history if step.iteration == 1] == [1, 2, 3]
    bound, _ = make_objective(problem)(np.array(flatten(cold.trained.parameters)))
    assert cold.bound == pytest.approx(bound, rel=1e-12)
    assert cold.history[-1].bound < cold.bound  # the steps have the objective with the term


@pytest.mark.parametrize("start", ["cold", "states"])
def test_the_term_makes_its_runs_better(fits, problem, runs_from_states, start):
    bound, term = make_objective(problem), problem.runs if start == "cold" else runs_from_states
    vectors = [np.array(flatten(fits[name].trained.parameters)) for name in ("without", start)]
    before, after = (bound(each)[0] - make_objective(problem, term, 1.0)(each)[0] for each in vectors)
    assert after < 0.9 * before


def set_coefficients(problem, value):
    """The start values with every coefficient of the first layer at `value`, flat."""
    changed = eqx.tree_at(lambda tree: tree.layers[0].linear.coefficients, problem.start, np.full((6, 1), value))
    return np.array(flatten(changed))


def test_runs_that_diverge_leave_the_model_as_it_was(problem):
    """A linear part that grows 10¹²-fold: the errors overflow, where the first stage can move nothing but a noise."""
    start = unflatten(set_coefficients(problem, 1e12), get_form(problem.start))
    spec = replace(problem.spec, recipe=replace(RECIPE, stages=(Stage(("sigma2",), 1),)))
    moved = problem._replace(start=start, spec=spec)
    (_, before), (weight, after) = optimise_alone(moved, lambda steps, text: None, Journal())
    assert weight == WEIGHTS[0] and after == before._replace(status=Status.NOT_FINITE)
