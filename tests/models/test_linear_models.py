"""Models with a linear part from end to end: recovery of a known system, model files, configurations."""

import tomllib
from dataclasses import replace

import jax
import numpy as np
import pytest

import revarb
from revarb.config.recipe import RECIPES, Recipe, Stage
from revarb.errors import InputError
from support import small


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


@pytest.fixture(scope="module")
def model():
    """Two states, two outputs with different gaps."""
    record = small.with_gaps(small.record(outputs=2), (slice(20, 23), 0))
    recipe = replace(RECIPES["linear"], stages=(Stage(("mu", "zeta", "w", "linear"), 4),))
    return small.spec(hidden=1, latent_dim=2, inducing=6, linear=True, recipe=recipe).fit(record)


def test_a_loaded_model_is_the_same_model(model, tmp_path):
    again = revarb.load(model.save(tmp_path / "m.rgp"))
    assert again.spec == model.spec and again.spec.linear
    for ours, theirs in zip(jax.tree.leaves(again.trained), jax.tree.leaves(model.trained), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    u = small.record(3).u
    np.testing.assert_array_equal(again.simulate(u, "mean").mean, model.simulate(u, "mean").mean)
    for values in ("mean", "std"):
        np.testing.assert_array_equal(getattr(again.simulate(u), values), getattr(model.simulate(u), values))


def test_every_layer_has_its_trained_linear_part(model):
    shapes = [layer.linear.coefficients.shape for layer in (*model.trained.chain.hidden, model.trained.chain.output)]
    assert shapes == [(2 * 2 + 2, 2), (2 * 2, 2)]
    for layer, parameters in zip(
        (*model.trained.chain.hidden, model.trained.chain.output), model.trained.parameters.layers, strict=True
    ):
        np.testing.assert_array_equal(layer.linear.coefficients, parameters.linear.coefficients)
        np.testing.assert_array_equal(layer.linear.offset, parameters.linear.offset)


def test_a_fit_without_a_linear_part_has_none():
    start = small.problem(small.spec(), small.record()).start
    assert all(layer.linear is None for layer in start.layers)
    with_part = small.problem(small.spec(linear=True), small.record()).start
    for plain, layer in zip(start.layers, with_part.layers, strict=True):  # everything else starts the same
        np.testing.assert_array_equal(plain.zeta, layer.zeta)
        np.testing.assert_array_equal(plain.raw_w, layer.raw_w)


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_by_name(name, tmp_path):
    """In a configuration file; `RGP(recipe=name)` is in test_argument_types.py."""
    file = tmp_path / "model.toml"
    file.write_text(f'lags = 3\nrecipe = "{name}"\n')
    spec = revarb.RGP.from_dict(tomllib.loads(file.read_text()))
    assert spec.recipe == RECIPES[name]
    assert revarb.RGP.from_dict(spec.to_dict()) == spec


def test_the_recipe_fixed_leaves_the_latent_variances_alone():
    recipe = RECIPES["fixed"]
    assert all("lam" not in stage.free for stage in recipe.stages) and recipe.latent_variance < Recipe().latent_variance
    assert RECIPES["R0"] == Recipe()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"recipe": "fast"}, "recipe must be a revarb.Recipe or one of 'R0', 'fixed'.*, received 'fast'"),
        ({"recipe": {"free_run": "warm"}}, "recipe.free_run must be 'cold' or a number of steps, received 'warm'"),
        ({"recipe": {"free_run": 0}}, "recipe.free_run must be a whole number of at least 1, received 0"),
        ({"recipe": {"free_run_weight": -1}}, "recipe.free_run_weight must be a finite number of at least 0"),
        ({"recipe": {"free_run_weight": float("inf")}}, "recipe.free_run_weight must be a finite number"),
        ({"recipe": {"free_run_iterations": 0}}, "recipe.free_run_iterations must be a whole number of at least 1"),
    ],
)
def test_wrong_configurations_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        revarb.RGP.from_dict(values)
