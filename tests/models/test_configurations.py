"""Configurations: defaults, plain values in and out, and what they refuse."""

import json

import pytest

from revarb.errors import InputError
from revarb.models.configuration import read_toml
from revarb.models.recipe import RECIPES, Recipe, Recognition, Stage
from revarb.models.rgp import RGP


def test_the_default_is_recipe_r0():
    free = ("mu", "lam", "zeta", "w", "linear", "tau")
    recipe = Recipe(
        hidden_noise=0.05, output_noise=0.01, latent_variance=0.5, lengthscale_factor=2.0, kernel_variance=1.0,
        zeta_noise=1e-3, stages=(Stage(free, 50), Stage(free, 100)), memory=20, max_rows=5000, free_run_weight=0.0,
    )  # fmt: skip
    assert Recipe() == RECIPES["R0"] == recipe and recipe.free_run_weights == ()
    assert RECIPES["fixed"].latent_variance < recipe.latent_variance
    assert all("lam" not in stage.free for stage in RECIPES["fixed"].stages)
    assert all(RGP.from_dict({"recipe": name}).recipe == RECIPES[name] for name in RECIPES)


@pytest.mark.parametrize(
    "spec",
    [
        RGP(lags=3, hidden=2, latent_dim=(1, 2), recipe=Recipe(stages=(Stage(("mu", "w"), 7),), jitter=1e-5)),
        RGP(recognition=Recognition(hidden=(7, 3), variance="shared"), recipe="fixed"),
    ],
)
def test_configurations_survive_json_and_their_own_repr(spec):
    assert RGP.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert eval(repr(spec)) == spec and hash(spec) == hash(eval(repr(spec)))
    assert repr(RGP(lags=3)) == "RGP(lags=3)"


STAGE = {"free": ["mu"], "iterations": 3}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (5, "the configuration must be a table of values, received 5"),
        ({"lag": 3}, r"unknown key 'lag' in the configuration; known are lags, input_lags"),
        ({"lags": 0}, "lags must be a whole number of at least 1, received 0"),
        ({"input_delay": -1}, "input_delay must be a whole number of at least 0"),
        ({"hidden": 3, "latent_dim": [1, 2]}, "latent_dim names 2 layers, but hidden=3"),
        ({"latent_dim": []}, "latent_dim must be a list of whole numbers"),
        ({"linear": 1}, "linear must be true or false, received 1"),
        ({"noise": "laplace"}, "noise must be 'gaussian' or 'student-t', received 'laplace'"),
        ({"noise": "student-t", "recognition": {}}, "noise='student-t' has no recognition model"),
        ({"degrees_of_freedom": 2.5}, "degrees_of_freedom must be a finite number above 2.5"),
        ({"degrees_of_freedom": 1e7}, r"degrees_of_freedom is at most 1e\+06, received 1e\+07; that is Gaussian"),
        ({"recipe": "slow"}, "recipe must be a revarb.Recipe or one of 'R0', 'fixed'.*received 'slow'"),
        ({"recipe": 5}, "recipe must be a table of values, received 5"),
        ({"recipe": {"noise": 1}}, r"unknown key 'recipe\.noise'"),
        ({"recipe": {"hidden_noise": 0.0}}, r"recipe\.hidden_noise must be a finite number above 0, received 0\.0"),
        ({"recipe": {"jitter": float("nan")}}, r"recipe\.jitter must be a finite number"),
        ({"recipe": {"memory": 1001}}, r"recipe\.memory must be a whole number from 1 to 1000"),
        ({"recipe": {"max_rows": 0}}, r"recipe\.max_rows must be a whole number of at least 1, received 0"),
        ({"recipe": {"free_run": "warm"}}, r"recipe\.free_run must be 'cold' or a number of steps, received 'warm'"),
        ({"recipe": {"free_run_weight": -1}}, r"recipe\.free_run_weight must be a finite number of at least 0"),
        ({"recipe": {"stages": 5}}, r"recipe\.stages must be a list of Stage"),
        ({"recipe": {"stages": []}}, r"recipe\.stages must be one or more Stage"),
        ({"recipe": {"stages": [STAGE | {"x": 1}]}}, r"unknown key 'stage\.x'"),
        ({"recipe": {"stages": [STAGE | {"free": ["noise"]}]}}, "unknown parameter group 'noise' in a stage"),
        ({"recipe": {"stages": [STAGE | {"free": []}]}}, "a stage must optimise something"),
        ({"recipe": {"stages": [STAGE | {"free": "mu"}]}}, "free of a stage must be a list of parameter groups"),
        ({"recipe": {"stages": [STAGE | {"iterations": 0}]}}, "iterations of a stage must be"),
        ({"recognition": {"hidden": ()}}, r"recognition\.hidden must be a list of whole numbers"),
        ({"recognition": {"hidden": (0,)}}, r"recognition\.hidden must be a whole number from 1 to 100000"),
        ({"recognition": {"learning_rate": 0.0}}, r"recognition\.learning_rate must be a finite number above 0"),
        ({"recognition": {"variance": "common"}}, r"recognition\.variance must be 'free' or 'shared', received"),
        ({"recognition": {"start": 0}}, r"recognition\.start must be 'output-error', 'random' or 'free-form'"),
    ],
)
def test_wrong_configurations_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        RGP.from_dict(values)


def test_files_that_are_no_toml_are_refused(tmp_path):
    (tmp_path / "good.toml").write_text("lags = 3")
    assert read_toml(tmp_path / "good.toml") == {"lags": 3}
    (tmp_path / "bad.toml").write_bytes(b"\xff = [")
    with pytest.raises(InputError, match=r"bad\.toml is not a TOML file"):
        read_toml(tmp_path / "bad.toml")
    with pytest.raises(InputError, match=r"cannot read .*none\.toml: No such file"):
        read_toml(tmp_path / "none.toml")
