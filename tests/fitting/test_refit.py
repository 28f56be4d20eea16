"""`model.refit`: from the trained parameters, in a fifth of the iterations, to the quality of a fit from scratch."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from revarb.analysis.scores import scores
from revarb.data.series import Series
from revarb.errors import ComputationError
from revarb.fitting import weight_path
from revarb.fitting.fit import _keep_at_outputs, infer_states, prepare_refit, start_at
from revarb.models.calibration import Calibration
from revarb.models.model_file import load
from revarb.models.recipe import R0_FREE, RECIPES, Recipe, Stage, Status
from revarb.runtime.numerics import with_numerics
from support import small
from support.journals import count_evaluations

RECIPE = Recipe(stages=(Stage(R0_FREE, 50), Stage(R0_FREE, 50)), kmeans_starts=2)
CALIBRATION = Calibration(0.5, 0.03, edges=(2, 10), factors=(1.0, 1.2, 1.5), stretches=12, error=0.2)
WHOLE = small.record(samples=160)
LONGER = small.record(samples=240)
TEST = small.record(7, samples=160)


@pytest.fixture(scope="module")
def model():
    """Fitted to the first half."""
    return replace(small.spec(hidden=1, inducing=20, recipe=RECIPE).fit(WHOLE[:80]), calibration=CALIBRATION)


@pytest.fixture(scope="module")
def again(model):
    return model.refit(WHOLE)


def error_of(model, test=TEST):
    return scores(model.simulate(test.u), test.y).rmse


def test_a_refit_is_as_good_as_a_fit_in_a_fifth_of_its_iterations(model, again):
    scratch = model.spec.fit(WHOLE)
    assert error_of(again) < 1.05 * error_of(scratch)
    assert error_of(again) < error_of(model)
    assert again.bound > scratch.bound - 0.02 * abs(scratch.bound)
    assert len(again.history) <= 20 < 100 == len(scratch.history)


def test_what_is_kept_and_what_is_new_also_in_a_file(model, again, tmp_path):
    assert again.scaling is model.scaling
    assert (again.spec, again.seed, again.calibration) == (model.spec, model.seed, model.calibration)
    assert again.lengths == (160,) and model.lengths == (80,) and [len(path) for path in again.smooth()] == [158]
    np.testing.assert_array_equal(again.preprocessor.input_range.high, WHOLE.u.max(axis=0))
    assert again.status in (Status.ITERATION_LIMIT, Status.CONVERGED)
    loaded = load(again.save(tmp_path / "again.rgp"))
    np.testing.assert_array_equal(loaded.simulate(TEST.u).std, again.simulate(TEST.u).std)
    assert loaded.refit(WHOLE).bound > again.bound - 0.01 * abs(again.bound)


@with_numerics
def test_states_are_those_that_the_training_found(model):
    """Inferred by the trained model from the same record, they are near the trained ones."""
    inferred, trained = infer_states(model, model.preprocessor, [WHOLE[:80]]), model.trained.parameters.states
    assert inferred.mu[0].shape == trained.mu[0].shape
    assert np.std(inferred.mu[0] - trained.mu[0]) < 0.2 * np.std(trained.mu[0])
    np.testing.assert_allclose(np.log(inferred.lam[0]).mean(), np.log(trained.lam[0]).mean(), rtol=1e-6)


@pytest.fixture(scope="module")
def linear():
    """Fitted to two thirds of a record, which show the nonlinearity (docs/guide/refit.md)."""
    recipe = replace(RECIPES["linear"], free_run_weight=2.0, kmeans_starts=2)
    return small.spec(hidden=1, inducing=15, linear=True, recipe=recipe).fit(WHOLE)


@pytest.mark.slow
def test_a_model_with_a_linear_part_and_the_free_run_term(linear):
    again, scratch = linear.refit(LONGER), linear.spec.fit(LONGER)
    assert error_of(again) < 1.05 * error_of(scratch)
    assert len(again.history) <= 36 < 180 == len(scratch.history)
    assert again.bound == pytest.approx(scratch.bound, rel=0.1)  # without the term, as that of a fit


@pytest.mark.slow
def test_runs_that_diverge_at_the_start_are_weighted_step_by_step(linear, monkeypatch):
    calls, real = [], weight_path.maximise

    def diverge_once(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise ComputationError("the bound is nan")
        return real(*arguments)

    monkeypatch.setattr(weight_path, "maximise", diverge_once)
    again = linear.refit(LONGER)
    assert {step.stage for step in again.history} == {1, 2}  # the term has a stage after the one of a refit
    assert error_of(again) < 1.05 * error_of(linear)


@pytest.mark.slow
def test_a_student_t_model_finds_new_outliers():
    y = WHOLE.y.copy()
    y[[30, 120], 0] += 5.0 * np.std(y)
    spiked, gaussian = replace(WHOLE, y=y), small.spec(hidden=1, inducing=20, recipe=RECIPE)
    again = replace(gaussian, noise="student-t").fit(spiked[:80]).refit(spiked)
    assert {each.row for each in again.outliers()} == {30, 120} and len(again.history) <= 20
    assert error_of(again) < 1.1 * error_of(gaussian.fit(WHOLE))


def test_an_interrupt_returns_the_best_model_so_far(model):
    with count_evaluations(press_at=6):
        again = model.refit(WHOLE)
    assert again.status is Status.INTERRUPTED and again.calibration == model.calibration
    assert 0 < len(again.history) < 20 and error_of(again) < 1.1 * error_of(model)


@with_numerics
def test_long_records_are_represented_by_blocks(model):
    short = replace(model, spec=replace(model.spec, recipe=replace(RECIPE, max_rows=100)))
    problem = start_at(short, prepare_refit(short, [small.record(samples=400)], calibrated=False))
    assert sum(problem.layout.lengths) < 160 and len(problem.ends) == 1


@pytest.mark.slow
def test_a_new_calibration(model):
    found = model.refit(WHOLE, calibrate=True).calibration
    assert found != CALIBRATION and found.stretches == 12 and found.error < 0.5


def test_records_that_are_far_away_warn(model):
    with pytest.warns(UserWarning, match="'y' is far from where it was in the records that the model was fitted to"):
        model.refit(Series(WHOLE.u, 3.0 * WHOLE.y))


def test_much_more_data_than_before_is_said_before_it_starts(model):
    with pytest.warns(UserWarning, match="have 160 rows, but the model was fitted to 80: a refit stays near its first"):
        model.refit(WHOLE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.refit(WHOLE[:110])


def make_narx(outputs, seed, sizes):
    """A record of as many plants side by side, the outputs of which have these sizes."""
    parts = [small.record(seed + number) for number in range(outputs)]
    y = [size * part.y for size, part in zip(sizes, parts, strict=False)]
    return Series(np.hstack([part.u for part in parts]), np.hstack(y))


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.filterwarnings("ignore:the records have")
def test_states_that_are_kept_at_the_outputs_start_there(outputs):
    """Also where the principal components of two outputs are others than before."""
    known, new = make_narx(outputs, 0, (1.0, 1.0)), make_narx(outputs, 4, (1.0, 1.6))
    model = small.spec(hidden=1, latent_dim=outputs, recipe="narx").fit(known)
    before, after = (each.latent_paths()[0][0] for each in (model, model.refit([known, new])))
    if outputs == 1:
        np.testing.assert_allclose(after, model.scaling.outputs(np.concatenate([known.y, new.y])), rtol=1e-12)
    assert all(np.corrcoef(before[:, state], after[:60, state])[0, 1] > 0.95 for state in range(outputs))
    if outputs == 2:  # and of their size and level, whatever the new records are
        expected = model.latent_paths()[0][0] @ [[1.0, 0.2], [0.1, -1.3]] + [0.4, -2.0]
        kept = _keep_at_outputs([model.scaling.outputs(known.y)], expected)
        np.testing.assert_allclose(kept, expected, atol=1e-9)
