"""Configurations: defaults, plain values in and out, and what they refuse."""

import copy
import json
import pickle
from dataclasses import replace

import pytest

import revarb
from revarb.baselines import PerOutput
from revarb.errors import InputError
from revarb.models.configuration import Configuration
from revarb.models.recipe import RECIPES, Recipe, Recognition, Stage
from revarb.models.rgp import RGP
from revarb.models.toml_file import read_toml


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
        RGP(recognition=Recognition(hidden=(7, 3), variance="shared"), recipe="fixed", degrees_of_freedom=None),
    ],
)
def test_an_rgp_is_its_own_repr(spec):
    assert eval(repr(spec)) == spec and hash(spec) == hash(eval(repr(spec)))
    assert repr(RGP(lags=3)) == "RGP(lags=3)"


CONFIGURATIONS = [
    RGP(lags=3, latent_dim=(1, 2), recipe=Recipe(stages=(Stage(("mu", "w"), 7), Stage(("mu",), 2)), max_rows=None)),
    RGP(recognition=Recognition(hidden=(7, 3), variance="shared"), recipe="fixed", degrees_of_freedom=None),
    Recipe(jitter=1e-5),
    Recognition(rounds=(5,)),
    Stage(("mu", "w"), 7),
    revarb.Mean(),
    revarb.ARX(lags=3, input_delay=0),
    revarb.GPNARX(inducing=20),
    revarb.MLPNARX(units=(2, 3)),
    revarb.LSTM(layers=(1, 2), learning_rate=1e-3),
    revarb.GPSSM(structure="markov"),
    revarb.ReducedRankGPSSM(box=1.5),
    PerOutput(revarb.GPNARX(lags=3)),
    revarb.Chosen(time_limit=3.5),
    revarb.Chosen(candidates=(RGP(recipe="fixed"), PerOutput(PerOutput(revarb.ARX())))),
    revarb.Chosen(candidates={'a "linear" one, 5 ü\x7f': revarb.ARX(), "none": revarb.Mean()}),
]


@pytest.mark.parametrize("spec", CONFIGURATIONS, ids=lambda spec: type(spec).__name__)
def test_configurations_survive_json_toml_pickle_and_copies(spec, tmp_path):
    plain = spec.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert type(spec).from_dict(plain) == spec
    assert type(spec).from_toml(spec.to_toml(tmp_path / "spec.toml")) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec == copy.deepcopy(spec)


def test_all_configurations_are_tested():
    public = [getattr(revarb, name) for name in revarb.__all__]
    kinds = {value for value in (*public, PerOutput) if isinstance(value, type) and issubclass(value, Configuration)}
    assert kinds == {type(spec) for spec in CONFIGURATIONS}


def test_a_toml_file_has_tables_for_what_is_inside(tmp_path):
    spec = RGP(lags=3, recipe=Recipe(stages=(Stage(("mu",), 7),)), degrees_of_freedom=None)
    lines = spec.to_toml(tmp_path / "spec.toml").read_text().splitlines()
    assert {"lags = 3", "calibrate = true", 'degrees_of_freedom = "none"', "jitter = 1e-06"} < set(lines)
    assert lines[-4:] == ["", "[[recipe.stages]]", 'free = ["mu"]', "iterations = 7"]


def test_parameters_are_read_and_set_by_name():
    spec = PerOutput(RGP(lags=3))
    params = spec.get_params()
    assert params["spec"] == RGP(lags=3) and params["spec__lags"] == 3 and params["spec__recipe__jitter"] == 1e-6
    assert spec.get_params(deep=False) == {"spec": RGP(lags=3)}
    changed = spec.set_params(spec__lags=5, spec__recipe__jitter=1e-5, spec__recipe="fixed")
    assert changed == PerOutput(RGP(lags=5, recipe=replace(RECIPES["fixed"], jitter=1e-5)))
    assert spec == PerOutput(RGP(lags=3)) == spec.set_params()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"lag": 3}, "RGP has no parameter 'lag'; it has lags, input_lags, "),
        ({"recipe__lags": 3}, "Recipe has no parameter 'lags'; it has hidden_noise, "),
        ({"recognition__hidden": (3,)}, "recognition is None, which has no parameter 'hidden'; set recognition first"),
        ({"lags": 0}, "lags must be a whole number of at least 1, received 0"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    with pytest.raises(InputError, match=message):
        RGP().set_params(**params)


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
        ({"recipe": 5}, "recipe must be a revarb.Recipe or one of 'R0', 'fixed'.*received 5"),
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
        ({"recipe": {"stages": [{"free": ["mu"]}]}}, r"key 'stage\.iterations' is missing in the configuration"),
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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "key 'spec' is missing in the configuration"),
        ({"spec": {"lags": 3}}, r"PerOutput takes a configuration, such as PerOutput\(GPNARX\(\)\), received {'lags"),
        ({"spec": {"model": "Stage"}}, "unknown model 'Stage' in the configuration; known are ARX, Chosen, GPNARX, "),
        ({"spec": {"model": 5}}, "unknown model 5"),
        ({"spec": {"model": "ARX", "hidden": 3}}, "unknown key 'hidden' in the configuration; known are lags, "),
    ],
)
def test_a_wrong_configuration_inside_of_another_one_is_refused(values, message):
    with pytest.raises(InputError, match=message):
        PerOutput.from_dict(values)


def test_a_candidate_of_another_class_has_no_plain_values():
    class Own:
        def fit(self, train, seed=0):
            return self

    with pytest.raises(InputError, match=r"candidates has <.*Own.*>, which is neither a configuration of revarb nor"):
        revarb.Chosen(candidates=[Own()]).to_dict()


def test_files_that_are_no_toml_are_refused(tmp_path):
    (tmp_path / "good.toml").write_text("lags = 3")
    assert read_toml(tmp_path / "good.toml") == {"lags": 3}
    (tmp_path / "bad.toml").write_bytes(b"\xff = [")
    with pytest.raises(InputError, match=r"bad\.toml is not a TOML file"):
        read_toml(tmp_path / "bad.toml")
    with pytest.raises(InputError, match=r"cannot read .*none\.toml: No such file"):
        read_toml(tmp_path / "none.toml")
