"""Paths of fits that advance together, compared with the same paths one after the other."""

from dataclasses import replace

import numpy as np
import pytest

import revarb
from revarb.config.recipe import FIXED_FREE, Recipe, Stage
from revarb.data.series import Series
from revarb.errors import InputError
from revarb.runtime.numerics import with_numerics
from revarb.training import trials
from revarb.training.batched_paths import fit_paths_together, initialise_together, trace_together
from revarb.training.fold_paths import ALL, fit_path
from revarb.training.problem import initialise, prepare
from support import small, small_choice

RECIPE = Recipe(
    hidden_noise=0.01, latent_variance=0.02, stages=(Stage(FIXED_FREE, 60),), free_run_weight=2.0,
    free_run_iterations=40,
)  # fmt: skip
SPEC = small.spec(hidden=1, inducing=5, recipe=RECIPE, calibrate=True)
RECORD = small.record(samples=130)


@pytest.mark.slow
@with_numerics
def test_folds_together_and_apart():
    stretches, steps = prepare(SPEC, [RECORD]).stretches, []
    fits = [(SPEC, 0), (SPEC, 2), (SPEC, ALL)]
    found = dict(fit_paths_together(fits, [RECORD], stretches, 0, lambda *report: steps.append(report)))
    together = [found[number] for number in range(3)]
    assert {member for member, *_ in steps} == {0, 1, 2}
    for fold, path in zip([0, 2, ALL], together, strict=True):
        alone = fit_path(SPEC, [RECORD], stretches, fold, 0, lambda steps, text: None)
        assert [model.spec.recipe.free_run_weight for model in path.models] == [0.0, 2.0]
        for model, same in zip(path.models, alone.models, strict=True):
            assert model.bound == pytest.approx(same.bound, rel=0.02)
            np.testing.assert_array_equal(model.scaling.y_mean, same.scaling.y_mean)
            u = RECORD.u
            np.testing.assert_allclose(model.simulate(u, "mean").mean, same.simulate(u, "mean").mean, atol=0.15)


@pytest.mark.slow
@with_numerics
def test_gaps_that_give_folds_other_shapes():
    """Two outputs, one with a gap inside of the first fold's stretches: there the groups of outputs are others."""
    stretches = prepare(SPEC, [RECORD]).stretches
    y = np.column_stack([RECORD.y, np.roll(RECORD.y, 3)])
    y[stretches[0].begin + 1, 1] = np.nan
    record = Series(RECORD.u, y)
    spec = replace(SPEC, recipe=replace(RECIPE, stages=(Stage(FIXED_FREE, 2),), free_run_iterations=1))
    together = fit_paths_together([(spec, 0), (spec, 1)], [record], stretches, 0, lambda *report: None)
    for fold, path in together:
        alone = fit_path(spec, [record], stretches, fold, 0, lambda steps, text: None)
        assert path.models[0].history[0].bound == pytest.approx(alone.models[0].history[0].bound, rel=0.5)
        assert [step.stage for step in path.models[-1].history] == [1, 1, 2]


@pytest.mark.slow
@with_numerics
def test_models_of_other_shapes_and_recipes():
    """Two recipes of one model are a batch, another model has its own, and what is likely to follow is not fitted."""
    quick = replace(RECIPE, stages=(Stage(FIXED_FREE, 2),), free_run_iterations=1)
    spec = replace(SPEC, recipe=quick)
    other = replace(spec, recipe=replace(quick, stages=(Stage(("mu",), 3),)))
    fewer = replace(spec, inducing=4)
    stretches = prepare(SPEC, [RECORD]).stretches
    fits = [(fewer, ALL), (spec, ALL), (other, ALL)]
    found = dict(fit_paths_together(fits, [RECORD], stretches, 0, lambda *report: None, [(spec, 0)]))
    assert sorted(found) == [0, 1, 2]
    assert [len(found[number].models[-1].history) for number in range(3)] == [3, 3, 4]
    assert found[0].models[0].spec.inducing == 4
    start = with_numerics(initialise)(prepare(other, [RECORD]), 0).start
    np.testing.assert_array_equal(found[2].models[0].trained.parameters.layers[0].zeta, start.layers[0].zeta)


def test_a_fold_that_cannot_be_fitted_is_an_error_of_its_own():
    def refuse(number):
        if number == 1:
            raise InputError("constant")
        return prepared

    prepared = with_numerics(initialise)(prepare(SPEC, [RECORD]), 0)
    first, wrong = initialise_together(refuse, [0, 1])
    assert first is prepared and str(wrong) == "constant"
    assert trace_together([wrong], lambda *report: None) == [wrong]


@pytest.mark.slow
def test_a_choice_on_an_accelerator(monkeypatch):
    """Its way through the candidates, on a CPU: the same candidates, and the model of the batch."""
    small_choice.use_quick_candidates(monkeypatch)
    apart = revarb.fit(RECORD, jobs=1)
    monkeypatch.setattr(trials.Trials, "together", True)
    monkeypatch.setattr(trials, "fit_path", None)  # not called
    together = revarb.fit(RECORD, jobs=1)
    assert [each.name for each in together.choice.candidates] == [each.name for each in apart.choice.candidates]
    assert together.choice.taken == apart.choice.taken
    for each, same in zip(together.choice.candidates, apart.choice.candidates, strict=True):
        assert each.error == pytest.approx(same.error, rel=0.1)
