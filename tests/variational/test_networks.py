"""Recognition networks: paths by a plain loop, gradients by finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from revarb.data.windows import Order
from revarb.fitting.networks import start_networks
from revarb.models.recipe import Recognition
from revarb.runtime.journal import Journal
from revarb.variational.bound import revarb_bound
from revarb.variational.parameters import flatten, get_form, select_entries, unflatten
from revarb.variational.states import draw_networks, run_networks
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
        x = jnp.tanh(x @ weight + bias)
    return x @ network.weights[-1] + network.biases[-1]


def run_by_loop(networks, initial, u_bar):
    """Record by record, step by step, with lists."""
    paths, row = [[] for _ in networks], 0
    for record, length in enumerate(LENGTHS):
        states = [list(start[record]) for start in initial]
        for _ in range(length - ORDER.lags):
            below = u_bar[row]
            for h, network in enumerate(networks):
                own = jnp.concatenate(states[h][: -ORDER.lags - 1 : -1])
                states[h].append(apply(network, jnp.concatenate([own, below])))
                below = jnp.concatenate(states[h][: -ORDER.lags - 1 : -1])
            row += 1
        for path, these in zip(paths, states, strict=True):
            path.extend(these)
    return [jnp.stack(path) for path in paths]


def test_the_scan_is_a_plain_loop(networks, initial, u_bar):
    """The paths of records of several lengths, which are padded, and their gradient."""

    def both(run):
        paths = run(networks)
        slopes = jax.grad(lambda g: sum(jnp.sum(path**2) for path in run(g)))(networks)
        return jax.tree.leaves((list(paths), slopes))

    scan, loop = (
        jax.jit(lambda: both(lambda g: run_networks(g, initial, u_bar, ORDER.lags, LENGTHS))),
        jax.jit(lambda: both(lambda g: run_by_loop(g, initial, u_bar))),
    )
    for got, expected in zip(scan(), loop(), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_the_gradient_by_finite_differences():
    problem, start = recognised_problem("shared")
    form, vector = get_form(start), np.array(flatten(start))
    bound = jax.jit(lambda v: revarb_bound(unflatten(v, form), problem.rows, problem.layout))
    gradient = np.asarray(jax.grad(bound)(vector))
    chosen = np.random.default_rng(0).choice(np.flatnonzero(select_entries(start, ("mu", "lam"))), 40, replace=False)
    expected = [oracles.finite_difference(bound, vector, k, step=1e-4) for k in chosen]
    np.testing.assert_allclose(gradient[chosen], expected, rtol=1e-5, atol=1e-5)
    assert np.abs(gradient[select_entries(start, ("mu",))]).max() > 0.0


def test_shared_variances_make_nothing_grow_with_the_record():
    def variational(samples, variance):
        spec = small.spec(recognition=Recognition(hidden=(4,), variance=variance, start="random"))
        problem = small.problem(spec, small.record(samples=samples))
        start = start_networks(spec.recognition, problem, problem.start, np.random.default_rng(0), Journal())[0]
        return int(select_entries(start, ("mu", "lam")).sum())

    assert variational(40, "shared") == variational(80, "shared")
    assert variational(80, "free") == variational(40, "free") + 2 * 40
