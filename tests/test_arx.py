"""ARX against systems whose coefficients are known."""

import numpy as np
import pytest

from revarb import ARX, InputError, Series, scores
from revarb.baselines import arx


def linear_record(seed, samples=400, noise=0.0, delay=1):
    """y_i = 1.4 y_{i−1} − 0.6 y_{i−2} + 0.5 u_{i−delay} + 0.3 u_{i−delay−1} + 2."""
    rng = np.random.default_rng(seed)
    before = 100  # the record begins when the system has long been running
    u, y = rng.normal(size=before + samples), np.zeros(before + samples)
    for i in range(3, before + samples):
        y[i] = 1.4 * y[i - 1] - 0.6 * y[i - 2] + 0.5 * u[i - delay] + 0.3 * u[i - delay - 1] + 2.0
    return Series(u[before:], y[before:] + noise * rng.normal(size=samples))


def test_a_known_linear_system_is_recovered():
    train = linear_record(0)
    model = ARX(lags=2, input_lags=2).fit(train)
    scaling = model.scaling
    a1, a2, b1, b2 = model.model.coefficients[:, 0]
    np.testing.assert_allclose([a1, a2], [1.4, -0.6], atol=1e-8)
    np.testing.assert_allclose(np.array([b1, b2]) * scaling.y_std / scaling.u_std, [0.5, 0.3], atol=1e-8)


def test_a_linear_system_is_simulated_to_the_last_digit():
    test = linear_record(1)
    path = ARX(lags=4, input_lags=4).fit(linear_record(0)).simulate(test.u)
    # Cold start: what is left of it after 60 rows is 0.775^60.
    np.testing.assert_allclose(path.mean[60:], test.y[60:], atol=1e-5)


def test_the_order_is_chosen_inside_the_training_part():
    model = ARX(lags=6, input_lags=6).fit(linear_record(0, noise=0.05))
    assert model.lags.states >= 2 and model.lags.inputs >= 2
    path = model.simulate(linear_record(1).u)
    assert scores(path, linear_record(1).y).nrmse < 0.1
    assert path.method == "residuals" and path.skip == model.lags.states + model.lags.inputs


def test_dead_time_and_feedthrough_are_inputs_of_another_age():
    for delay in (0, 2):
        test = linear_record(1, delay=delay)
        path = ARX(lags=2, input_lags=2, input_delay=delay).fit(linear_record(0, delay=delay)).simulate(test.u)
        np.testing.assert_allclose(path.mean[60:], test.y[60:], atol=1e-5)


def test_the_band_is_as_wide_as_the_errors_on_the_training_tail():
    """Output noise of known size: the band holds what it should on new data."""
    path = ARX(lags=5, input_lags=5).fit(linear_record(2, samples=1600, noise=0.3)).simulate(linear_record(1).u)
    assert 0.90 <= scores(path, linear_record(1, noise=0.3).y).coverage95 <= 1.0


def test_where_every_order_runs_away_there_is_no_model(monkeypatch):
    monkeypatch.setattr(arx, "_tail_errors", lambda frame, records, tries: [np.array([[np.inf]])] * len(tries))
    with pytest.raises(InputError, match="no ARX model of up to 2 outputs and 2 inputs back"):
        ARX(lags=2, input_lags=2).fit(linear_record(0))
