"""Which models the avatar accepts, and the cache of its default model."""

from dataclasses import replace

import pytest

from revarb.config.recipe import Recipe, Stage
from revarb.errors import InputError
from revarb.models.ensemble import Ensemble
from revarb.motion.avatar import model as models
from support import small
from support.avatars import TINY, gaits, trained


@pytest.fixture
def model(recorded_data):
    return trained()


def renamed(model, **changes):
    return replace(model, preprocessor=replace(model.preprocessor, **changes))


def test_other_models_are_refused(model, tmp_path):
    def refused(other):
        with pytest.raises(InputError) as error:
            models.open_model(other.save(tmp_path / "m.rgp"))
        assert str(error.value).startswith(f"{tmp_path / 'm.rgp'} cannot move the avatar: ")
        return str(error.value).split(": ", 1)[1]

    assert models.open_model(model.save(tmp_path / "m.rgp")).output_names == model.output_names
    assert refused(renamed(model, input_names=("force",))) == "its only input must be 'speed', received ['force']"
    names = model.output_names
    assert "lack 'root.ty'" in refused(renamed(model, output_names=("height", *names[1:])))
    assert "'ltibia.rz' is unknown or repeated" in refused(
        renamed(model, output_names=tuple("ltibia.rz" if name == "ltibia.rx" else name for name in names))
    )
    assert "sampling interval must be 0.0083 to 0.2 s, but is 1 s" in refused(renamed(model, dt=1.0))


@pytest.mark.slow
def test_an_ensemble_is_refused(tmp_path):
    several = Ensemble.from_members([small.spec().fit(small.record(), seed=seed) for seed in (0, 1)])
    with pytest.raises(InputError, match="a model of type Ensemble; a single FittedRGP is needed"):
        models.open_model(several.save(tmp_path / "m.rgp"))


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "user_cache_path", lambda name: tmp_path / name)
    monkeypatch.setattr(models, "load_avatar_spec", lambda: TINY)
    return tmp_path


def test_another_recipe_has_another_file(own_cache):
    here = models.cached_model_path(TINY)
    assert here == models.cached_model_path(TINY) != models.cached_model_path(replace(TINY, inducing=31))
    assert here.parent == own_cache / "revarb" / "avatar" and here.name.startswith("avatar-")


def test_training_takes_the_recipe_and_its_motions(recorded_data, own_cache, monkeypatch):
    monkeypatch.setattr(models, "load_avatar_records", lambda: [*gaits().walks, *gaits().runs])
    monkeypatch.setattr(models, "load_avatar_spec", lambda: replace(TINY, recipe=Recipe(stages=(Stage(("mu",), 1),))))
    model = models.train_model()
    assert models.check_model(model) is model and model.seed == models.SEED
