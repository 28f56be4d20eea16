"""A trained RGP: its final states, its networks, and its linear parts."""

from dataclasses import replace

import numpy as np
import pytest

import revarb
from revarb.models.recipe import RECIPES, Recipe, Stage
from support import small
from support.recognised import QUICK_NETWORKS


def test_final_states_are_those_of_the_last_samples():
    """The final state is q(x)'s: newest first, layer after layer, with the record's last inputs."""
    model = small.spec().fit(small.record())
    state = model.final_states[0]
    mu = [np.asarray(layer)[:, 0] for layer in model.trained.parameters.states.mu]
    np.testing.assert_array_equal(state.mean, [mu[0][-1], mu[0][-2], mu[1][-1], mu[1][-2]])
    lam = [np.log1p(np.exp(np.asarray(raw)[:, 0])) for raw in model.trained.parameters.states.raw_lam]
    np.testing.assert_allclose(state.cov, np.diag([lam[0][-1], lam[0][-2], lam[1][-1], lam[1][-2]]), rtol=1e-12)
    np.testing.assert_array_equal(state.past_u, model.scaling.inputs(small.record().u)[-2:])


@pytest.mark.slow
def test_a_network_run_is_its_own_simulation():
    model = small.spec(recognition=QUICK_NETWORKS).fit([small.record(0), small.record(1, samples=40)], seed=2)
    u = small.record(5).u
    path = model.simulate(u, "network")
    assert path.std is None and path.method == "network" and len(path) == len(u)
    paths = model.recognise(u)
    assert [each.shape for each in paths] == [(60, 1), (60, 1)]
    # The output layer at the window of the last layer's path, once the cold start has left the window.
    window = np.array([[paths[-1][30, 0], paths[-1][29, 0]]])
    z = np.asarray(model.trained.chain.output.mean(window))
    np.testing.assert_allclose(path.mean[30], model.scaling.raw_outputs(z)[0], rtol=1e-9)
    warm = model.simulate(u, "network", start=model.final_states[0])
    assert warm.skip == 0 and not np.array_equal(warm.mean[3], path.mean[3])


def linear_record(seed, samples=200):
    """y_i = 1.4 y_{i−1} − 0.6 y_{i−2} + 0.5 u_{i−1} + 0.3 u_{i−2} + 2, without noise."""
    rng = np.random.default_rng(seed)
    u, y = rng.normal(size=100 + samples), np.zeros(100 + samples)
    for i in range(2, 100 + samples):
        y[i] = 1.4 * y[i - 1] - 0.6 * y[i - 2] + 0.5 * u[i - 1] + 0.3 * u[i - 2] + 2.0
    return revarb.Series(u[100:], y[100:])


@pytest.mark.slow
def test_a_known_linear_system_is_recovered_as_the_noise_goes_to_zero():
    """Latent variances and GP parts vanish; the prior of the initial states, relative to the noise, is what is left."""
    test, errors = linear_record(1), []
    for noise in (1e-4, 1e-8):
        recipe = Recipe(
            hidden_noise=noise, output_noise=noise, latent_variance=1e-6 * noise, kernel_variance=1e-3 * noise,
            stages=(Stage(("mu", "zeta", "w", "linear"), 20),),
        )  # fmt: skip
        model = small.spec(hidden=1, inducing=10, linear=True, recipe=recipe).fit(linear_record(0))
        paths = [model.simulate(test.u, method=method).mean for method in ("mean", "moments")]
        # What is left of the cold start after 100 rows is 0.775^100.
        errors.append([np.abs(path - test.y)[100:].max() / test.y.std() for path in paths])
    assert max(errors[0]) < 1e-3 and max(errors[1]) < 1e-6
    np.testing.assert_allclose(model.trained.chain.hidden[0].linear.coefficients[:2, 0], [1.4, -0.6], atol=1e-6)


def test_every_layer_has_its_trained_linear_part():
    """Two states, two outputs with different gaps."""
    record = small.with_gaps(small.record(outputs=2), (slice(20, 23), 0))
    recipe = replace(RECIPES["linear"], stages=(Stage(("mu", "zeta", "w", "linear"), 4),))
    model = small.spec(hidden=1, latent_dim=2, inducing=6, linear=True, recipe=recipe).fit(record)
    layers = (*model.trained.chain.hidden, model.trained.chain.output)
    assert [layer.linear.coefficients.shape for layer in layers] == [(2 * 2 + 2, 2), (2 * 2, 2)]
    for layer, parameters in zip(layers, model.trained.parameters.layers, strict=True):
        np.testing.assert_array_equal(layer.linear.coefficients, parameters.linear.coefficients)
        np.testing.assert_array_equal(layer.linear.offset, parameters.linear.offset)


def test_a_fit_without_a_linear_part_has_none():
    start = small.problem(small.spec(), small.record()).start
    assert all(layer.linear is None for layer in start.layers)
    with_part = small.problem(small.spec(linear=True), small.record()).start
    for plain, layer in zip(start.layers, with_part.layers, strict=True):  # everything else starts the same
        np.testing.assert_array_equal(plain.zeta, layer.zeta)
        np.testing.assert_array_equal(plain.raw_w, layer.raw_w)
