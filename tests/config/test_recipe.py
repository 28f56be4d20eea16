import json

import pytest

from revarb.config.recipe import Recipe, Stage
from revarb.config.rgp import RGP
from revarb.errors import InputError


def test_the_default_is_recipe_r0():
    recipe = Recipe()
    assert (recipe.hidden_noise, recipe.output_noise, recipe.latent_variance) == (0.05, 0.01, 0.5)
    assert (recipe.lengthscale_factor, recipe.kernel_variance, recipe.zeta_noise) == (2.0, 1.0, 1e-3)
    assert [stage.iterations for stage in recipe.stages] == [50, 100]
    # A model without a linear part has no entries in the group "linear".
    assert all(set(stage.free) == {"mu", "lam", "zeta", "w", "linear", "tau"} for stage in recipe.stages)
    assert (recipe.free_run_weight, recipe.free_run_weights) == (0.0, ())
    assert (recipe.memory, recipe.max_rows) == (20, 5000)


def test_configuration_survives_json():
    spec = RGP(lags=3, hidden=2, latent_dim=(1, 2), recipe=Recipe(stages=(Stage(("mu", "w"), 7),), jitter=1e-5))
    assert RGP.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lag": 3}, r"unknown key 'lag' in the configuration; known are lags, input_lags"),
        ({"recipe": {"noise": 1}}, "unknown key 'recipe.noise'"),
        ({"recipe": {"stages": [{"free": ["mu"], "iterations": 3, "x": 1}]}}, "unknown key 'stage.x'"),
        ({"lags": 0}, "lags must be a whole number of at least 1, received 0"),
        ({"input_delay": -1}, "input_delay must be a whole number of at least 0"),
        ({"hidden": 3, "latent_dim": [1, 2]}, "latent_dim names 2 layers, but hidden=3"),
        ({"latent_dim": 0}, "latent_dim must be a whole number from 1 to 1000"),
        ({"recipe": {"hidden_noise": 0.0}}, "recipe.hidden_noise must be a finite number above 0, received 0.0"),
        ({"recipe": {"jitter": float("nan")}}, "recipe.jitter must be a finite number"),
        ({"recipe": {"max_rows": 0}}, "recipe.max_rows must be a whole number of at least 1, received 0"),
        ({"recipe": {"stages": []}}, "recipe.stages must be one or more Stage"),
        ({"recipe": {"stages": [{"free": ["noise"], "iterations": 3}]}}, "unknown parameter group 'noise' in a stage"),
        ({"recipe": {"stages": [{"free": [], "iterations": 3}]}}, "a stage must optimise something"),
        ({"recipe": {"stages": [{"free": ["mu"], "iterations": 0}]}}, "iterations of a stage must be"),
    ],
)
def test_wrong_configurations_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        RGP.from_dict(values)
