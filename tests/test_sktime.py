"""The forecaster of sktime: its checks, starts, quantiles, updates and gaps."""

import numpy as np
import pandas as pd
import pytest
from sktime.utils.estimator_checks import check_estimator

import revarb
from revarb.errors import InputError
from revarb.sktime import Forecaster
from support import small

RECORD = small.record(samples=160, inputs=2, outputs=2)
INDEX = pd.period_range("2020-01", periods=160, freq="M")
X = pd.DataFrame(RECORD.u, columns=["valve", "pump"], index=INDEX)
Y = pd.DataFrame(RECORD.y, columns=["level", "flow"], index=INDEX)
AHEAD = np.arange(1, 41)
QUICK_CHECKS = ["test_clone", "test_set_params", "test_fit_idempotent", "test_predict_quantiles", "test_update_predict"]


@pytest.fixture(scope="module")
def fitted():
    return Forecaster(small.spec(hidden=1)).fit(Y[:120], X=X[:120])


def run_checks(**options):
    results = check_estimator(Forecaster, raise_exceptions=False, verbose=False, **options)
    failed = {name: result for name, result in results.items() if result != "PASSED"}
    assert len(results) > 10 and not failed


@pytest.mark.filterwarnings("ignore")
def test_some_checks_of_sktime():
    run_checks(tests_to_run=QUICK_CHECKS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_all_checks_of_sktime():
    run_checks()


def test_a_forecast_is_a_simulation_that_continues_the_record(fitted):
    path = fitted.model_.simulate(RECORD.u[120:], start="continue")
    forecast = fitted.predict(AHEAD, X=X[120:])
    np.testing.assert_array_equal(forecast, path.mean)
    assert list(forecast.columns) == ["level", "flow"] and forecast.index.equals(INDEX[120:])
    assert fitted.model_.input_names == ("valve", "pump")
    some = fitted.predict([3, 10], X=X[120:])
    np.testing.assert_allclose(some, path.mean[[2, 9]], atol=1e-9)


def test_quantiles_intervals_and_variances_are_those_of_the_simulation(fitted):
    path = fitted.model_.simulate(RECORD.u[120:], start="continue")
    lower, upper = path.interval(0.9)
    interval = fitted.predict_interval(AHEAD, X=X[120:], coverage=0.9)
    np.testing.assert_allclose(interval["flow", 0.9, "lower"], lower[:, 1])
    np.testing.assert_allclose(interval["level", 0.9, "upper"], upper[:, 0])
    quantiles = fitted.predict_quantiles(AHEAD, X=X[120:], alpha=[0.05, 0.5])
    np.testing.assert_allclose(quantiles["flow", 0.05], lower[:, 1])
    np.testing.assert_allclose(quantiles["flow", 0.5], path.mean[:, 1])
    np.testing.assert_allclose(fitted.predict_var(AHEAD, X=X[120:])["flow"], path.std[:, 1] ** 2)


def test_an_update_moves_the_start_and_fits_again_if_asked_to(fitted):
    moved = fitted.clone().fit(Y[:120], X=X[:120])
    moved.update(Y[120:140], X=X[120:140], update_params=False)
    window = revarb.Window(RECORD.u[:140], RECORD.y[:140], 1.0, X.columns, Y.columns)
    path = fitted.model_.simulate(RECORD.u[140:], start=window)
    np.testing.assert_allclose(moved.predict(AHEAD[:20], X=X[140:]), path.mean, atol=1e-9)
    again = moved.update(Y[140:150], X=X[140:150]).predict([1], X=X[150:])
    whole = fitted.clone().fit(Y[:150], X=X[:150]).predict([1], X=X[150:])
    np.testing.assert_array_equal(again, whole)


def test_inputs_are_taken_by_their_names(fitted):
    expected = fitted.predict(AHEAD, X=X[120:])
    np.testing.assert_array_equal(fitted.predict(AHEAD, X=X.loc[INDEX[120:], ["pump", "valve"]]), expected)
    with pytest.raises(InputError, match=r"X must have the columns that it had in fit, \['valve', 'pump'\], received"):
        fitted.predict(AHEAD, X=X[120:].rename(columns={"pump": "heater"}))


def test_gaps_of_y_and_series_without_inputs():
    gaps = Y["level"].copy()
    gaps.iloc[30:40] = np.nan
    forecast = Forecaster(small.spec(hidden=1)).fit(gaps[:120], X=X[:120]).predict(AHEAD, X=X[120:])
    assert np.sqrt(np.mean((forecast - Y["level"][120:]) ** 2)) < 0.5 * Y["level"].std()
    alone = Forecaster(revarb.ARX(lags=2)).fit(Y["level"][:120])
    np.testing.assert_allclose(alone.predict([1, 2]), alone.model_.simulate(steps=2, start="continue").mean[:, 0])


@pytest.mark.parametrize(
    "index", [INDEX, INDEX.to_timestamp(), np.arange(160), pd.timedelta_range("0s", periods=160, freq="4s")]
)
def test_rows_must_be_in_even_steps(index):
    y = Y["level"].set_axis(index)
    fitted = Forecaster(revarb.ARX(lags=2)).fit(y[:100])
    with pytest.raises(
        revarb.InputError, match=r"the index of y must be in even steps, and the 140 rows from .* NaN in y"
    ):
        fitted.update(y[110:150], update_params=False)
    with pytest.raises(revarb.InputError, match="the 99 rows from"):
        fitted.clone().fit(y[:100].drop(y.index[40]))


def test_parameters_of_the_model_have_names():
    forecaster = Forecaster(revarb.ARX())
    assert forecaster.get_params()["model__lags"] == 10
    assert forecaster.set_params(model__lags=3).model == revarb.ARX(lags=3)
    assert forecaster.clone().model == revarb.ARX(lags=3)


@pytest.mark.parametrize(
    ("given", "missing"),
    [(None, "2030-01"), (X[121:], "2030-01"), (X[120:122], "2030-03")],
    ids=["none", "late", "few"],
)
def test_missing_inputs_are_named(fitted, given, missing):
    with pytest.raises(
        revarb.InputError, match=f"3 steps needs the rows of X from 2030-01 to 2030-03; {missing} is missing"
    ):
        fitted.predict([1, 3], X=given)
