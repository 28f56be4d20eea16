"""The estimator of scikit-learn: its checks, searches over parameters of the model, starts, and frames."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import revarb
from revarb.sklearn import EXPECTED_FAILED_CHECKS, Simulator
from support import small
from support.processes import run_python

RECORD = small.record(samples=160, inputs=2, outputs=2)
TRAIN, TEST = RECORD[:120], RECORD[120:]
ARX = revarb.ARX(lags=2, input_lags=2)


@parametrize_with_checks(
    [Simulator(revarb.ARX(lags=1, input_lags=1)), Simulator(revarb.Mean(), start="cold")],
    expected_failed_checks=lambda estimator: EXPECTED_FAILED_CHECKS if isinstance(estimator.model, revarb.ARX) else {},
)
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_a_clone_has_the_same_model_and_is_not_fitted():
    fitted = Simulator(small.spec(hidden=1), random_state=1).fit(TRAIN.u, TRAIN.y)
    copied = clone(fitted)
    assert copied.get_params() == fitted.get_params() and clone(fitted.model) is fitted.model
    assert copied.get_params()["model__recipe__jitter"] == 1e-6
    with pytest.raises(NotFittedError):
        copied.predict(TEST.u)


def test_predictions_are_simulations_that_continue_the_record_of_the_fit():
    fitted = Simulator(small.spec(hidden=1)).fit(TRAIN.u, TRAIN.y)
    path = fitted.model_.simulate(TEST.u, start="continue")
    mean, std = fitted.predict(TEST.u, return_std=True)
    np.testing.assert_array_equal(mean, path.mean)
    np.testing.assert_array_equal(std, path.std)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(TEST.u), mean)
    assert fitted.score(TEST.u, TEST.y) > 0.8
    cold = fitted.set_params(start="cold").predict(TEST.u)
    np.testing.assert_array_equal(cold, fitted.model_.simulate(TEST.u).mean)


@pytest.mark.parametrize("spec", [revarb.GPNARX(2, 2, iterations=5), revarb.LSTM((1,), 3, updates=25)])
def test_models_with_a_cold_start_only_run_through_the_inputs_of_the_fit_first(spec):
    fitted = Simulator(spec).fit(TRAIN.u, TRAIN.y)
    mean, std = fitted.predict(TEST.u, return_std=True)
    whole = fitted.model_.simulate(RECORD.u)
    np.testing.assert_allclose(mean, whole.mean[120:], atol=1e-9)
    np.testing.assert_allclose(std, whole.std[120:], atol=1e-9)


def test_a_vector_of_outputs_gives_a_vector():
    fitted = Simulator(ARX).fit(TRAIN.u, TRAIN.y[:, 0])
    mean, std = fitted.predict(TEST.u, return_std=True)
    assert mean.shape == std.shape == (40,)
    assert Simulator(ARX).fit(TRAIN.u, TRAIN.y[:, :1]).predict(TEST.u).shape == (40, 1)


def test_the_score_leaves_out_missing_values_and_the_first_rows_after_a_cold_start():
    fitted = Simulator(ARX, start="cold").fit(TRAIN.u, TRAIN.y[:, 0])
    skip, mean = fitted.model_.skip, fitted.predict(TEST.u)
    spoiled = TEST.y[:, 0].copy()
    spoiled[:skip], spoiled[20:25] = 1e3, np.nan
    used = np.isfinite(spoiled) & (np.arange(40) >= skip)
    errors = np.sum((mean - spoiled)[used] ** 2) / np.sum((spoiled[used] - spoiled[used].mean()) ** 2)
    assert skip > 0 and fitted.score(TEST.u, spoiled) == pytest.approx(1.0 - errors)
    assert fitted.score(TEST.u, spoiled, sample_weight=used) == pytest.approx(1.0 - errors)
    with pytest.raises(revarb.InputError, match="R² needs two measured rows, received 0 after the first"):
        fitted.score(TEST.u, np.full(40, np.nan))


def test_missing_outputs_are_fitted():
    y = TRAIN.y[:, 0].copy()
    y[30:40] = np.nan
    assert Simulator(small.spec(hidden=1)).fit(TRAIN.u, y).score(TEST.u, TEST.y[:, 0]) > 0.7


def test_a_search_over_parameters_of_the_model():
    steps = Pipeline([("scale", StandardScaler()), ("simulate", Simulator(revarb.ARX()))])
    grid = {"simulate__model__lags": [1, 4], "simulate__model": [revarb.ARX(input_lags=1), revarb.ARX(input_lags=3)]}
    search = GridSearchCV(steps, grid, cv=TimeSeriesSplit(2)).fit(TRAIN.u, TRAIN.y)
    assert len(search.cv_results_["params"]) == 4 and np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_["simulate"]
    assert best.model.lags == search.best_params_["simulate__model__lags"]
    assert search.score(TEST.u, TEST.y) > 0.2
    scores = cross_val_score(Simulator(ARX), TRAIN.u, TRAIN.y, cv=TimeSeriesSplit(2), scoring="neg_mean_squared_error")
    assert (scores < 0.0).all() and len(scores) == 2


def test_frames_give_names_and_times():
    times = pd.date_range("2026-03-01", periods=160, freq="4s")
    X = pd.DataFrame(RECORD.u, columns=["valve", "pump"], index=times)
    y = pd.Series(RECORD.y[:, 0], index=times, name="level")
    fitted = Simulator(ARX).fit(X[:120], y[:120])
    model = fitted.model_
    assert (model.input_names, model.output_names, model.dt) == (("valve", "pump"), ("level",), 4.0)
    plain = Simulator(ARX).fit(TRAIN.u, TRAIN.y[:, 0]).predict(TEST.u)
    np.testing.assert_array_equal(fitted.predict(X[120:]), plain)


def test_without_a_model_the_best_is_chosen(monkeypatch):
    chosen = []
    monkeypatch.setattr("revarb.selection.choose.fit", lambda *args, **options: chosen.append(args) or ARX.fit(args[0]))
    fitted = Simulator(random_state=3).fit(TRAIN.u, TRAIN.y)
    [[records, seed, *_]] = chosen
    assert len(records) == 1 and seed == 3 and fitted.predict(TEST.u).shape == TEST.y.shape


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Simulator(revarb.ARX).fit(TRAIN.u, TRAIN.y), r"model must be a configuration, such as revarb\.RGP"),
        (lambda: Simulator(ARX, start="warm").fit(TRAIN.u, TRAIN.y), "start must be 'continue' or 'cold', received"),
        (lambda: Simulator(ARX, random_state=None).fit(TRAIN.u, TRAIN.y), "seed must be a whole number from 0"),
        (lambda: Simulator().set_params(model__lags=3), "model is None, which has no parameter 'lags'; set model="),
        (lambda: Simulator(ARX).set_params(model__lag=3), "ARX has no parameter 'lag'; it has lags, input_lags"),
        (lambda: Simulator(ARX).fit(TRAIN.u, np.full(120, np.inf)), "Input y contains infinity"),
    ],
)
def test_wrong_arguments_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


@pytest.mark.parametrize(("module", "needed"), [("sklearn", "scikit-learn"), ("sktime", "sktime")])
def test_a_missing_library_is_named_with_its_extra(module, needed):
    program = f"import sys, revarb\nsys.modules[{module!r}] = None\ntry:\n    import revarb.{module}\n"
    done = run_python("-c", f"{program}except revarb.InputError as error:\n    print(error)")
    assert done.stdout == f'revarb.{module} needs {needed}; pip install "revarb[{module}]"\n', done.stderr


def test_revarb_itself_needs_none_of_them():
    listed = "print(*({'sklearn', 'sktime'} & set(sys.modules)))"
    done = run_python("-c", f"import sys, revarb\n[getattr(revarb, name) for name in revarb.__all__]\n{listed}")
    assert done.stdout == "\n", done.stderr
