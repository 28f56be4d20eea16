"""Initial values of a fit follow the recipe."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from revarb.data.windows import regressors
from revarb.fitting.initial_values import compute_components, initialise_means
from revarb.models.recipe import Recipe
from support import small

RECIPE = Recipe(
    hidden_noise=0.07, output_noise=0.02, latent_variance=0.3, lengthscale_factor=1.5, kernel_variance=0.8,
    zeta_noise=0.0, initial_mean=0.1, initial_variance=1.3,
)  # fmt: skip


def test_values_of_the_recipe():
    problem = small.problem(small.spec(recipe=RECIPE), small.record())
    parameters, y = problem.start, problem.preprocessor.scaling.outputs(small.record().y)
    assert [float(layer.sigma2) for layer in parameters.layers] == pytest.approx([0.07, 0.07, 0.02])
    assert [float(layer.variance) for layer in parameters.layers] == pytest.approx([0.8] * 3)
    for mu, lam, prior in zip(parameters.states.mu, parameters.states.lam, parameters.priors, strict=True):
        np.testing.assert_array_equal(mu, y)
        np.testing.assert_allclose(lam, 0.3)
        np.testing.assert_allclose(prior.prior_mean, 0.1)
        np.testing.assert_allclose(prior.variance, 1.3)
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(parameters))
    x_hats = regressors(parameters.states.mu, problem.rows.u_bar, 2, problem.layout.lengths)
    for layer, x_hat in zip(parameters.layers, x_hats, strict=True):  # lengthscales follow the range of their regressor
        expected = 1.5 * np.ptp(np.asarray(x_hat), axis=0) / np.sqrt(2.0)
        np.testing.assert_allclose(1.0 / np.sqrt(layer.w), expected, rtol=1e-9)
    moved = small.problem(small.spec(recipe=replace(RECIPE, zeta_noise=0.2)), small.record())
    # The first layer's centres are drawn before any noise is: the difference is the noise alone.
    assert (moved.start.layers[0].zeta - parameters.layers[0].zeta).std() == pytest.approx(0.2, rel=0.3)


def test_latent_means_start_at_the_output_or_its_principal_components(rng):
    y = rng.normal(size=(50, 1))
    np.testing.assert_array_equal(initialise_means([y[:20], y[20:]], 1), y)
    wide = rng.normal(size=(50, 1)) @ np.array([[1.0, -2.0, 0.5]]) + 0.1 * rng.normal(size=(50, 3))
    components = compute_components(wide)
    np.testing.assert_allclose(components.T @ components / 50, np.eye(3), atol=1e-10)
    assert abs(np.corrcoef(components[:, 0], wide[:, 1])[0, 1]) > 0.99
    np.testing.assert_allclose(initialise_means([wide], 2), components[:, :2])


def test_more_states_than_outputs_start_at_rates_of_change():
    time = np.linspace(0.0, 6.0, 200)
    states = initialise_means([np.sin(time)[:, None]], 2)
    assert abs(np.corrcoef(states[:, 1], np.cos(time))[0, 1]) > 0.999
    doubled = np.stack([np.sin(time), 2.0 * np.sin(time)], axis=1)  # two columns, one signal
    assert abs(np.corrcoef(initialise_means([doubled], 2)[:, 1], np.cos(time))[0, 1]) > 0.999
    line = initialise_means([time[:, None]], 4)
    assert np.isfinite(line).all() and line.shape == (200, 4)
