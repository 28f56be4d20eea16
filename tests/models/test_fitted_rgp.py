"""A trained RGP: its final states, its networks, and its linear parts."""

from dataclasses import replace

import numpy as np
import pytest

import revarb
from fuzz import samples
from revarb.models.recipe import Recipe, Stage, Step
from support import small


def test_final_states_are_those_of_the_last_samples():
    """The final state is q(x)'s: newest first, layer after layer, with the record's last inputs."""
    model = small.spec().fit(small.record())
    state = model.final_states[0]
    mu = [np.asarray(layer)[:, 0] for layer in model.trained.parameters.states.mu]
    np.testing.assert_array_equal(state.mean, [mu[0][-1], mu[0][-2], mu[1][-1], mu[1][-2]])
    lam = [np.log1p(np.exp(np.asarray(raw)[:, 0])) for raw in model.trained.parameters.states.raw_lam]
    np.testing.assert_allclose(state.cov, np.diag([lam[0][-1], lam[0][-2], lam[1][-1], lam[1][-2]]), rtol=1e-12)
    np.testing.assert_array_equal(state.past_u, model.scaling.inputs(small.record().u)[-2:])


@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_the_title_of_a_fit_has_the_last_value_of_its_curve(weight):
    """With a free-run term the curve is that of the objective, which is less than the bound."""
    model = samples.model()
    spec = replace(model.spec, recipe=replace(model.spec.recipe, free_run_weight=weight))
    bounds = (-30.0, 12.34) if weight else (-30.0, 56.78)
    history = tuple(Step(1, number, bound) for number, bound in enumerate(bounds, start=1))
    figure = replace(model, spec=spec, bound=56.78, history=history).plot_fit()
    curve = figure.axes[-1]
    title, label = figure.get_suptitle(), curve.get_ylabel()
    assert f"{label} {curve.lines[0].get_ydata()[-1]:.1f}" in title and "bound 56.8" in title
    assert label == ("objective" if weight else "bound")


def linear_record(seed, rows=200):
    """y_i = 1.4 y_{i−1} − 0.6 y_{i−2} + 0.5 u_{i−1} + 0.3 u_{i−2} + 2, without noise."""
    rng = np.random.default_rng(seed)
    u, y = rng.normal(size=100 + rows), np.zeros(100 + rows)
    for i in range(2, 100 + rows):
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
