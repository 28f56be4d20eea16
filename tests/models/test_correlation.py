"""Correlations of signals with gaps against plain loops, and their bands against drawn signals."""

import numpy as np
import pytest

from revarb.models.correlation import LEAST_PAIRS, correlate, inflate_variance, joint_factor


def by_hand(a, b, lag):
    """The correlation at one lag from the list of pairs, and their number."""
    rows = [t for t in range(len(a)) if 0 <= t - lag < len(b) and np.isfinite(a[t]) and np.isfinite(b[t - lag])]
    x, y = a[rows] - np.nanmean(a), b[np.array(rows) - lag] - np.nanmean(b)
    return np.sum(x * y) / np.sqrt(np.sum(x**2) * np.sum(y**2)), len(rows)


@pytest.mark.parametrize("scale", [1.0, 1e200, 1e-200])
def test_a_correlation_is_that_of_the_measured_pairs(rng, scale):
    a, b = rng.normal(size=(2, 90))
    a[rng.random(90) < 0.2], b[40:50] = np.nan, np.nan
    lags = np.arange(-7, 8)
    found = correlate(scale * a, 3.0 + b, lags)
    expected = [by_hand(a, b, lag) for lag in lags]
    np.testing.assert_allclose(found.values, [value for value, _ in expected], rtol=1e-9)
    np.testing.assert_array_equal(found.pairs, [count for _, count in expected])


def test_a_signal_with_itself_is_one_at_lag_zero(rng):
    a = rng.normal(size=60)
    a[10:20] = np.nan
    assert correlate(a, a, np.array([0])).values[0] == pytest.approx(1.0)


def test_too_few_pairs_and_constant_signals_have_no_correlation(rng):
    a = rng.normal(size=50)
    lags = np.array([0, 50 - LEAST_PAIRS, 50 - LEAST_PAIRS + 1])
    assert np.isfinite(correlate(a, a, lags).values).tolist() == [True, True, False]
    assert np.isnan(correlate(a, np.full(50, 0.1), np.arange(3)).values).all()
    assert np.isnan(correlate(np.full(50, np.nan), a, np.arange(3)).values).all()


def test_the_joint_factor_holds_all_of_many_normal_values(rng):
    assert joint_factor(0.95, 1) == pytest.approx(1.959964)
    drawn = np.abs(rng.normal(size=(20000, 40))).max(axis=1)
    assert np.mean(drawn < joint_factor(0.95, 40)) == pytest.approx(0.95, abs=0.01)


def filtered(rng, pole, length):
    """First-order autoregression."""
    values = rng.normal(size=length)
    for t in range(1, length):
        values[t] += pole * values[t - 1]
    return values


def test_the_variance_of_a_cross_correlation_of_coloured_signals():
    """Bartlett: (1 + ab) / (1 − ab) for two autoregressions; the drawn correlations have that variance too."""
    rng = np.random.default_rng(3)
    pairs = [(filtered(rng, 0.8, 400), filtered(rng, 0.7, 400)) for _ in range(300)]
    exact = (1.0 + 0.8 * 0.7) / (1.0 - 0.8 * 0.7)
    drawn = 400.0 * np.mean([correlate(e, u, np.array([0])).values[0] ** 2 for e, u in pairs])
    estimated = np.median([inflate_variance(e, u) for e, u in pairs])
    assert drawn == pytest.approx(exact, rel=0.2) and estimated == pytest.approx(exact, rel=0.2)
    assert inflate_variance(filtered(rng, -0.9, 400), filtered(rng, 0.9, 400)) == 1.0  # never narrower
