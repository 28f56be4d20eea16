"""Propagated moments against Monte Carlo and quadrature."""

import numpy as np
import pytest

from revarb.gp.layer import Gaussians
from revarb.gp.posterior import compute_posterior, predict_certain
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.moments import run_moments
from support import oracles
from support.chains import correlated_start, make_layer, monte_carlo, smooth_chain


@pytest.mark.parametrize("which", ["model", "wide_model", "tilted"])
def test_moments_agree_with_monte_carlo(which, request, rng):
    """10⁵ trajectories of two steps, from a correlated Gaussian start.

    After the first layer the truth is no Gaussian any more, and moments are matched, so the start is kept narrow
    enough for that error to be smaller than the sampling error of the comparison.
    """
    found = request.getfixturevalue(which)
    chain = found if which == "tilted" else smooth_chain(found.trained.chain, 1e-3)
    start = correlated_start(chain, rng, scale=0.25)
    u_bar = rng.uniform(-1, 1, size=(2, 2))
    got = run_moments(chain, start, u_bar)
    drawn = monte_carlo(chain, start, u_bar, 100_000, rng)
    std = drawn.std(0)
    np.testing.assert_allclose(got.mean, drawn.mean(0), atol=0.02 * std.max())
    np.testing.assert_allclose(np.sqrt(got.variance), std, rtol=0.03)


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
    # An output layer that passes on the newest state: nearly linear in x_i, independent of x_{i−1}.
    grid = np.linspace(-6, 6, 12)[:, None] * np.array([[1.0, 0.0]])
    smooth = make_layer(grid, np.array([0.05, 1e-9]), 100.0, 1e-3)
    identity = compute_posterior(smooth, Gaussians(grid, 0 * grid), grid[:, :1], 1e-8)
    got = run_moments(Chain((layer,), identity, 2), start, now[None])
    assert float(got.mean[0, 0]) == pytest.approx(first, abs=0.01)
    assert float(got.variance[0, 0]) == pytest.approx(second - first**2, rel=0.05)
