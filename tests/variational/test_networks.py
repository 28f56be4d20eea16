"""Recognition networks: paths by a plain loop, gradients by finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from revarb.data.windows import Order, initial_states
from revarb.fitting.networks import start_networks
from revarb.models.recipe import Recognition
from revarb.runtime.journal import Journal
from revarb.variational.bound import revarb_bound
from revarb.variational.networks import Network, RecognisedStates, draw_networks, run_networks
from revarb.variational.parameters import Parameters, flatten, get_form, select_entries, unflatten
from revarb.variational.states import FreeStates
from support import oracles, small
from support.recognised import recognised_problem

ORDER = Order(lags=3, input_lags=2, input_delay=1)
DIMS = (2, 1)
LENGTHS = (9, 5, 7)


@pytest.fixture
def networks(rng):
    return draw_networks((5, 4), ORDER, DIMS, 1, rng)


@pytest.fixture
def initial(rng):
    return tuple(rng.normal(size=(len(LENGTHS), ORDER.lags, dim)) for dim in DIMS)


@pytest.fixture
def u_bar(rng):
    return rng.normal(size=(sum(LENGTHS) - ORDER.lags * len(LENGTHS), ORDER.input_lags))


def apply(network, x):
    for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
        x = np.tanh(x @ weight + bias)
    return x @ network.weights[-1] + network.biases[-1]


def looped(networks, initial, u_bar):
    """Record by record, step by step, with lists."""
    paths, row = [[] for _ in networks], 0
    for record, length in enumerate(LENGTHS):
        states = [list(start[record]) for start in initial]
        for _ in range(length - ORDER.lags):
            below = u_bar[row]
            for h, network in enumerate(networks):
                own = np.concatenate(states[h][: -ORDER.lags - 1 : -1])
                states[h].append(apply(network, np.concatenate([own, below])))
                below = np.concatenate(states[h][: -ORDER.lags - 1 : -1])
            row += 1
        for path, these in zip(paths, states, strict=True):
            path.extend(these)
    return [np.array(path) for path in paths]


def test_the_scan_is_a_plain_loop(networks, initial, u_bar):
    got = run_networks(networks, initial, u_bar, ORDER.lags, LENGTHS)
    for path, expected in zip(got, looped(networks, initial, u_bar), strict=True):
        np.testing.assert_allclose(path, expected, rtol=1e-12, atol=1e-13)


def test_padding_short_records_changes_nothing(networks, initial, u_bar):
    """Each record alone, without padding, against all of them in one batch; the gradients as well."""
    together = run_networks(networks, initial, u_bar, ORDER.lags, LENGTHS)
    rows = np.cumsum([0, *(length - ORDER.lags for length in LENGTHS)])
    states = np.cumsum([0, *LENGTHS])

    def alone(networks, record):
        starts = [start[record : record + 1] for start in initial]
        return run_networks(networks, starts, u_bar[rows[record] : rows[record + 1]], ORDER.lags, LENGTHS[record:][:1])

    for record in range(len(LENGTHS)):
        for path, expected in zip(together, alone(networks, record), strict=True):
            np.testing.assert_allclose(path[states[record] : states[record + 1]], expected, rtol=1e-12)

    def squares(g):
        return jnp.sum(run_networks(g, initial, u_bar, ORDER.lags, LENGTHS)[-1] ** 2)

    def squares_alone(g):
        return sum(jnp.sum(alone(g, record)[-1] ** 2) for record in range(len(LENGTHS)))

    joint, parts = (jax.jit(jax.grad(function))(networks) for function in (squares, squares_alone))
    for a, b in zip(jax.tree.leaves(joint), jax.tree.leaves(parts), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("variance", ["free", "shared"])
def test_the_gradient_by_finite_differences(variance):
    problem, start = recognised_problem(variance)
    form, vector = get_form(start), np.array(flatten(start))
    bound = jax.jit(lambda v: revarb_bound(unflatten(v, form), problem.rows, problem.layout))
    gradient = np.asarray(jax.grad(bound)(vector))
    chosen = np.random.default_rng(0).choice(np.flatnonzero(select_entries(start, ("mu", "lam"))), 40, replace=False)
    expected = [oracles.finite_difference(bound, vector, k, step=1e-4) for k in chosen]
    np.testing.assert_allclose(gradient[chosen], expected, rtol=1e-5, atol=1e-5)
    assert np.abs(gradient[select_entries(start, ("mu",))]).max() > 0.0


@pytest.mark.slow
def test_networks_that_give_the_free_means_give_the_same_bound():
    problem, start = recognised_problem()
    states = start.states.evaluate(problem.rows.u_bar, problem.layout.lags, problem.layout.lengths)
    written_out = Parameters(start.layers, FreeStates(states.mu, states.raw_lam), start.priors)
    ours = float(revarb_bound(start, problem.rows, problem.layout))
    assert ours == pytest.approx(float(revarb_bound(written_out, problem.rows, problem.layout)), rel=1e-12)
    # A network that is constant gives a constant path, as free means would be.
    flat = tuple(
        Network(tuple(0 * w for w in g.weights), tuple(0 * b + 0.3 for b in g.biases)) for g in start.states.networks
    )
    constant = RecognisedStates(flat, start.states.initial, start.states.raw_lam)
    path = constant.evaluate(problem.rows.u_bar, problem.layout.lags, problem.layout.lengths).mu[0]
    first = initial_states(path, problem.layout.lags, problem.layout.lengths)
    np.testing.assert_array_equal(first, start.states.initial[0])
    np.testing.assert_allclose(path[problem.layout.lags : problem.layout.lengths[0]], 0.3)


def test_shared_variances_make_nothing_grow_with_the_record():
    def variational(samples, variance):
        spec = small.spec(recognition=Recognition(hidden=(4,), variance=variance, start="random"))
        problem = small.problem(spec, small.record(samples=samples))
        start = start_networks(spec.recognition, problem, problem.start, np.random.default_rng(0), Journal())[0]
        return int(select_entries(start, ("mu", "lam")).sum())

    assert variational(40, "shared") == variational(80, "shared")
    assert variational(80, "free") == variational(40, "free") + 2 * 40
