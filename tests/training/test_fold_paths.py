"""Fits without one fold, along rising weights of the free-run term."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.config.recipe import FIXED_FREE, Recipe, Stage
from revarb.data.series import Series
from revarb.errors import InputError
from revarb.training.fold_paths import ALL, fit_path, set_weight
from revarb.training.problem import prepare
from revarb.training.stretches import mask_fold
from support import small

RECIPE = Recipe(
    hidden_noise=0.01,
    latent_variance=0.02,
    stages=(Stage(FIXED_FREE, 4), Stage(FIXED_FREE, 4)),
    free_run_weight=10.0,
    free_run_iterations=4,
)
SPEC = small.spec(hidden=1, inducing=8, recipe=RECIPE, calibrate=True)
RECORD = small.record(samples=130)
STRETCHES = prepare(SPEC, [RECORD]).stretches


def run(fold, report=lambda steps, text: None):
    return fit_path(SPEC, [RECORD], STRETCHES, fold, 0, report)


@pytest.fixture(scope="module")
def path():
    return run(1)


def test_a_model_at_every_weight(path):
    assert [model.spec.recipe.free_run_weight for model in path.models] == [0.0, 2.0, 10.0]
    assert all(replace(model.spec, recipe=SPEC.recipe) == SPEC for model in path.models)
    assert path.seconds > 0.0
    lengths = [len(model.history) for model in path.models]
    assert lengths == sorted(lengths) and lengths[0] < lengths[-1]
    assert len({model.bound for model in path.models}) == 3


def test_the_free_runs_get_better_on_what_was_fitted(path):
    fitted = mask_fold([RECORD], STRETCHES, 1)[0].y[10:]

    def rms(model):
        return np.sqrt(np.nanmean((model.simulate(RECORD.u, "mean").mean[10:] - fitted) ** 2))

    assert rms(path.models[2]) < rms(path.models[0])


@pytest.mark.slow
def test_weight_zero_is_the_fit_without_the_term(path):
    """The same records and recipe through `RGP.fit`; the compiled programs differ, and with them the rounding."""
    plain = replace(set_weight(SPEC, 0.0), calibrate=False)
    masked = plain.fit(mask_fold([RECORD], STRETCHES, 1))
    assert path.models[0].bound == pytest.approx(masked.bound, rel=1e-6)
    np.testing.assert_array_equal(path.models[0].scaling.y_mean, masked.scaling.y_mean)
    np.testing.assert_allclose(
        path.models[0].simulate(RECORD.u, "mean").mean, masked.simulate(RECORD.u, "mean").mean, atol=1e-3
    )


@pytest.mark.slow
def test_a_mask_that_is_all_true_changes_nothing():
    plain = replace(set_weight(SPEC, 0.0), calibrate=False)
    [model, *_] = run(ALL).models
    assert model.bound == pytest.approx(plain.fit(RECORD).bound, rel=1e-6)
    assert model.scaling.y_mean == pytest.approx(RECORD.y.mean())


def test_ctrl_c_leaves_no_models():
    seen = []

    def press(steps, text):
        seen.append(steps)
        if len(seen) == 3:
            raise KeyboardInterrupt

    assert run(0, press).models == ()
    assert len(seen) == 3


def test_a_constant_output_outside_the_fold_is_refused():
    y = np.zeros(130)
    rows = next(stretch.rows for stretch in STRETCHES if stretch.fold == 2)
    y[rows] = RECORD.y[rows, 0]
    with pytest.raises(InputError, match="output column 'y' is constant"):
        fit_path(SPEC, [Series(RECORD.u, y)], STRETCHES, 2, 0, lambda steps, text: None)
