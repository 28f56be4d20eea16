"""Free simulation against plain loops and Monte Carlo."""

from itertools import pairwise

import jax
import numpy as np
import pytest

import oracles
import small
from revarb.data.windows import input_windows
from revarb.errors import InputError
from revarb.gp.layer import Gaussians
from revarb.gp.posterior import compute_posterior, predict_certain
from revarb.simulation.chain import Chain, StartState, cold_start
from revarb.simulation.mean import run_mean
from revarb.simulation.moments import run_moments
from revarb.simulation.samples import run_samples
from test_collapsed import make_layer


@pytest.fixture(scope="module")
def model():
    return small.spec().fit(small.record())


@pytest.fixture(scope="module")
def wide_model():
    return small.spec(latent_dim=(2, 1), lags=3).fit(small.record(outputs=2))


def loop_mean(model, u):
    """The mean-only free run by a plain loop over the paper's windows, cold at the first full window of inputs."""
    L, L_u, delay = model.order.lags, model.order.input_lags, model.order.input_delay
    z = model.scaling.inputs(u)
    padded = np.concatenate([np.zeros((model.order.reach, z.shape[1])), z])
    chain = model.trained.chain

    def cold():
        return [[np.zeros(dim)] * L for dim in chain.latent_dims]

    x, rows = cold(), []
    for i in range(len(u)):
        if i == model.order.reach:
            x = cold()
        now = i + model.order.reach
        below = [padded[now - delay - age] for age in range(L_u)]
        for h, layer in enumerate(chain.hidden):
            x_hat = np.concatenate([*x[h][::-1][:L], *below])
            x[h] = [*x[h], np.asarray(predict_certain(layer, x_hat[None])[0][0])]
            below = x[h][::-1][:L]
        rows.append(np.asarray(predict_certain(chain.output, np.concatenate(below)[None])[0][0]))
    return model.scaling.raw_outputs(np.array(rows))


@pytest.mark.parametrize("which", ["model", "wide_model"])
def test_mean_run_equals_a_plain_loop(which, request):
    model = request.getfixturevalue(which)
    u = small.record(3).u
    np.testing.assert_allclose(model.simulate(u, method="mean").mean, loop_mean(model, u), atol=1e-10)


def smooth_chain(chain, noise):
    """The chain with another noise, so that a test can make steps nearly linear or nearly certain."""

    def quieter(layer):
        return type(layer)(layer.zeta, layer.w, layer.variance, np.array(noise), layer.beta, layer.reduction)

    output = None if chain.output is None else quieter(chain.output)
    return Chain(tuple(quieter(layer) for layer in chain.hidden), output, chain.lags)


def monte_carlo(chain, start, u_bar, count, rng):
    """Trajectories by a plain loop: each layer draws f + noise at its sampled regressors."""
    L = chain.lags
    joint = rng.multivariate_normal(start.mean, start.cov, size=count)
    sizes = np.cumsum([0, *(L * dim for dim in chain.latent_dims)])
    windows = [joint[:, a:b] for a, b in pairwise(sizes)]
    outputs = []
    for now in u_bar:
        side = np.broadcast_to(now, (count, len(now)))
        for h, layer in enumerate(chain.hidden):
            mean, variance = predict_certain(layer, np.hstack([windows[h], side]))
            drawn = mean + np.sqrt(variance + layer.sigma2)[:, None] * rng.normal(size=mean.shape)
            dim = chain.latent_dims[h]
            windows[h] = np.hstack([drawn, windows[h][:, :-dim]])
            side = windows[h]
        if chain.output is None:
            outputs.append(drawn)
            continue
        mean, variance = predict_certain(chain.output, side)
        outputs.append(mean + np.sqrt(variance + chain.output.sigma2)[:, None] * rng.normal(size=mean.shape))
    return np.stack(outputs, axis=1)


def correlated_start(chain, rng, scale):
    size = chain.lags * sum(chain.latent_dims)
    root = scale * rng.normal(size=(size, size)) / np.sqrt(size)
    return StartState(0.3 * rng.normal(size=size), root @ root.T + 1e-4 * np.eye(size), np.zeros((2, 1)))


@pytest.mark.parametrize("which", ["model", "wide_model"])
@pytest.mark.parametrize("steps", [1, 2])
def test_moments_agree_with_monte_carlo(which, steps, request, rng):
    """10⁵ trajectories of one and two steps, from a correlated Gaussian start.

    After the first layer the truth is no Gaussian any more, and moments are matched, so the start is kept narrow
    enough for that error to drown in the sampling error of the comparison.
    """
    model = request.getfixturevalue(which)
    chain = smooth_chain(model.trained.chain, 1e-3)
    start = correlated_start(chain, rng, scale=0.25)
    u_bar = rng.uniform(-1, 1, size=(steps, model.order.input_lags))
    got = run_moments(chain, start, u_bar, 0)
    drawn = monte_carlo(chain, start, u_bar, 100_000, rng)
    std = drawn.std(0)
    np.testing.assert_allclose(got.mean, drawn.mean(0), atol=0.02 * std.max())
    np.testing.assert_allclose(np.sqrt(got.variance), std, rtol=0.03)


def test_covariances_between_lags_matter(model, rng):
    """The same variances without their correlations give another answer: the full covariance is really carried."""
    chain = smooth_chain(model.trained.chain, 1e-3)
    start = correlated_start(chain, rng, scale=0.5)
    independent = StartState(start.mean, np.diag(np.diag(start.cov)), start.past_u)
    u_bar = rng.uniform(-1, 1, size=(3, 2))
    full, dropped = run_moments(chain, start, u_bar, 0), run_moments(chain, independent, u_bar, 0)
    assert np.abs(np.sqrt(full.variance / dropped.variance) - 1.0).max() > 0.05


def test_first_hidden_step_has_exact_moments(model):
    """One layer, one step: mean and variance of the new state by quadrature, read through a nearly linear output."""
    chain = model.trained.chain
    layer = chain.hidden[0]
    mean, cov = np.array([0.2, -0.1]), np.array([[0.3, 0.1], [0.1, 0.2]])
    now = np.array([0.4, -0.2])
    start = StartState(mean, cov, np.zeros((2, 1)))

    def moments(x):
        f, spread = predict_certain(layer, np.concatenate([x, now])[None])
        f = float(f[0, 0])
        return np.array([f, f * f + float(spread[0]) + float(layer.sigma2)])

    first, second = oracles.gaussian_expectation(moments, mean, cov)
    # An output layer that hands the newest state through: nearly linear in x_i, blind to x_{i−1}.
    grid = np.linspace(-6, 6, 12)[:, None] * np.array([[1.0, 0.0]])
    smooth = make_layer(grid, np.array([0.05, 1e-9]), 100.0, 1e-3)
    identity = compute_posterior(smooth, Gaussians(grid, 0 * grid), grid[:, :1], 1e-8)
    got = run_moments(Chain((layer,), identity, 2), start, now[None], 0)
    assert float(got.mean[0, 0]) == pytest.approx(first, abs=0.01)
    assert float(got.variance[0, 0]) == pytest.approx(second - first**2, rel=0.05)


def test_samples_agree_with_moments_and_are_returned(model):
    u = small.record(3, samples=25).u
    moments = model.simulate(u)
    sampled = model.simulate(u, method="samples", samples=2000, seed=1)
    assert sampled.samples.shape == (2000, 25, 1)
    np.testing.assert_allclose(sampled.mean, moments.mean, atol=0.25 * moments.std.max())
    np.testing.assert_allclose(sampled.samples.mean(0), sampled.mean, atol=5 * sampled.std.max() / np.sqrt(2000))
    np.testing.assert_allclose(sampled.samples.std(0), sampled.std, rtol=0.08)
    again = model.simulate(u, method="samples", samples=2000, seed=1)
    np.testing.assert_array_equal(sampled.samples, again.samples)
    assert not np.array_equal(model.simulate(u, method="samples", samples=10, seed=2).samples, sampled.samples[:10])


def test_one_sampled_step_equals_the_monte_carlo_loop(model, rng):
    """In one step no function is asked twice, and to draw whole functions or new values is the same.

    Later the loop forgets what it drew, and a trajectory does not: tests/test_pathwise.py compares several steps.
    """
    chain, start = model.trained.chain, cold_start(model.spec.latent_dims, 2, 2, 1)
    u_bar = rng.uniform(-1, 1, size=(1, 2))
    f, drawn = run_samples(chain, start, u_bar, 0, jax.random.key(0), 8000)
    expected = monte_carlo(chain, start, u_bar, 20_000, rng)
    np.testing.assert_allclose(np.mean(drawn, axis=0), expected.mean(0), atol=0.04)
    np.testing.assert_allclose(np.std(drawn, axis=0), expected.std(0), rtol=0.05)
    assert np.var(drawn - f) == pytest.approx(float(chain.output.sigma2), rel=0.1)


def test_simulation_has_a_row_per_input_row_and_the_start_is_forgotten(model):
    u = small.record(3, samples=60).u
    cold = model.simulate(u)
    warm = model.simulate(u, start=model.final_states[0])
    assert len(cold) == len(warm) == 60
    assert np.abs(cold.mean[0] - warm.mean[0]).max() > 1e-3
    np.testing.assert_allclose(cold.mean[-5:], warm.mean[-5:], atol=0.05)


def test_before_a_full_window_missing_inputs_stand_at_their_training_mean(model):
    """The lead-in equals a run with the mean in front; the run that counts starts cold where the window is full."""
    u = small.record(3, samples=20).u
    reach = model.order.reach
    mean_input = np.repeat(model.scaling.u_mean[None], reach, axis=0)
    padded = model.scaling.inputs(np.concatenate([mean_input, u]))
    start = cold_start(model.spec.latent_dims, 2, reach, 1)
    lead_in = run_mean(model.trained.chain, start, input_windows(padded, model.lags), 10_000)
    path = model.simulate(u, method="mean").mean
    np.testing.assert_allclose(path[:reach], model.scaling.raw_outputs(np.asarray(lead_in))[:reach], atol=1e-12)
    later = run_mean(model.trained.chain, start, input_windows(model.scaling.inputs(u), model.lags), 0)
    np.testing.assert_allclose(path[reach:], model.scaling.raw_outputs(np.asarray(later)), atol=1e-12)


@pytest.mark.slow
def test_scores_wait_for_the_inputs_and_then_for_the_states():
    """L + L_u as in the paper; with a dead time the window fills later, and the scores wait for it."""
    assert small.spec(lags=2, input_lags=3).fit(small.record()).skip == 5
    late = small.spec(lags=2, input_lags=3, input_delay=9).fit(small.record())
    assert late.order.reach == 11 and late.skip == 13
    assert late.simulate(small.record(3).u).skip == 13
    assert late.simulate(small.record(3).u, start=late.final_states[0]).skip == 0


def test_going_on_where_training_ended(model):
    """The final state is q(x)'s: newest first, layer after layer, with the record's last inputs."""
    state = model.final_states[0]
    mu = [np.asarray(layer)[:, 0] for layer in model.trained.parameters.states.mu]
    np.testing.assert_array_equal(state.mean, [mu[0][-1], mu[0][-2], mu[1][-1], mu[1][-2]])
    lam = [np.log1p(np.exp(np.asarray(raw)[:, 0])) for raw in model.trained.parameters.states.raw_lam]
    np.testing.assert_allclose(state.cov, np.diag([lam[0][-1], lam[0][-2], lam[1][-1], lam[1][-2]]), rtol=1e-12)
    np.testing.assert_array_equal(state.past_u, model.scaling.inputs(small.record().u)[-2:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"u": np.zeros((20, 3))}, r"u has 3 column\(s\), but the model was trained with 1: \['u'\]"),
        ({"u": np.zeros((2, 1))}, r"u has 2 row\(s\), but the lags need at least 3"),
        ({"u": [0.0, np.nan, 1.0, 2.0]}, "u has 1 value.*not finite"),
        ({"u": np.zeros((20, 1)), "method": "samples", "samples": 1}, "samples must be a whole number of at least 2"),
        ({}, r"pass the inputs \['u'\] as u"),
        ({"u": np.zeros((20, 1)), "steps": 20}, "and no steps"),
    ],
)
def test_wrong_simulations_are_refused(model, arguments, message):
    with pytest.raises(InputError, match=message):
        model.simulate(**arguments)


def test_a_system_without_inputs_is_told_how_long_to_run():
    model = small.spec().fit(small.record(inputs=0))
    assert len(model.simulate(steps=7)) == 7
    with pytest.raises(InputError, match=r"steps \(the model has no inputs"):
        model.simulate()
    with pytest.raises(InputError, match="trained with 0"):
        model.simulate(np.zeros((7, 1)))


def test_a_state_of_another_model_is_refused(model, wide_model):
    with pytest.raises(InputError, match="start must be 'cold'"):
        model.simulate(small.record(3).u, start=wide_model.final_states[0])
