"""Residual analysis: the errors, false alarms, missing lags found at the right lag, gaps, sentences and pictures."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.signal import lfilter

import revarb
from revarb.data.trajectory import Trajectory
from revarb.data.windows import Order
from revarb.models.residual_findings import LEAST_PAIRS, correlate, inflate_variance
from revarb.models.residuals import analyse_residuals
from support import small

NOTHING = "nothing is left in the residuals"
ORDER = Order(lags=2, input_lags=2, input_delay=1)


def coloured(rng, shape, pole):
    """First-order autoregressions, one per column."""
    return lfilter([1.0], [1.0, -pole], rng.normal(size=shape), axis=0)


def analyse(errors, u, order=ORDER, skip=4, **options):
    """The analysis of given errors: the predictions are zero."""
    record = revarb.Series(u, errors)
    path = Trajectory(np.zeros_like(record.y), None, "moments", skip, record.output_names)
    return analyse_residuals(record, path, order, **options)


def test_white_residuals_raise_an_alarm_in_at_most_five_of_a_hundred_records():
    """Two outputs beside two coloured inputs, one in ten values missing. The band of a single lag holds 95 %."""
    rng, drawn = np.random.default_rng(5), []
    for _ in range(200):
        e = rng.normal(size=(300, 2))
        e[rng.random(e.shape) < 0.1] = np.nan
        drawn.append(analyse(e, coloured(rng, (300, 2), 0.8)))
    clean = np.mean([each.sentence == NOTHING for each in drawn])
    assert 0.93 <= clean <= 0.995  # at least 95 %, and not a rule that never speaks up
    assert np.mean([all(each.white) for each in drawn]) > 0.96
    assert np.mean([all(each.independent) for each in drawn]) > 0.96
    own = [np.abs(each.autocorrelation[1:]) < each.autocorrelation_band[1:] for each in drawn]
    crossed = [np.abs(each.cross_correlation) < each.cross_correlation_band for each in drawn]
    assert np.mean(own) == pytest.approx(0.95, abs=0.01)
    assert np.mean(crossed) == pytest.approx(0.95, abs=0.01)


def test_coloured_residuals_are_not_blamed_on_a_slow_input():
    rng = np.random.default_rng(6)
    found = [analyse(coloured(rng, (400, 1), 0.95), coloured(rng, (400, 1), 0.97)) for _ in range(60)]
    assert not any(each.white[0] for each in found)
    assert np.mean([each.independent[0] for each in found]) > 0.95


@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_a_missing_input_lag_is_found_at_its_lag(missing):
    """The output follows two inputs; the model knows the lags 1 and 2 of both, and the second acts at lag 6 too."""
    rng = np.random.default_rng(7)
    u = np.tanh(coloured(rng, (900, 2), 0.5))
    y = 0.3 * rng.normal(size=900)
    y[6:] += u[5:-1, 0] + 0.2 * u[:-6, 1]
    y[rng.random(900) < missing] = np.nan
    record = revarb.Series(u, y, input_names=["pump", "valve"])
    model = revarb.ARX(lags=1, input_lags=2).fit(record[:400])
    residuals = model.residuals(record[400:])
    assert residuals.independent == (False,)
    assert "still follow input 'valve' (lag 6: 0." in residuals.sentence and "'pump'" not in residuals.sentence
    assert "try more input lags (input_lags=6 or more)" in residuals.sentence
    better = revarb.ARX(lags=1, input_lags=6).fit(record[:400]).residuals(record[400:])
    assert better.sentence == NOTHING and better.explained[0] > residuals.explained[0]


def test_errors_are_measured_minus_predicted_one_step_ahead():
    train, test = small.record(0, outputs=2), small.with_gaps(small.record(1, outputs=2), (slice(20, 23), 0), (40, 1))
    model = revarb.ARX(2, 2).fit(train)
    residuals, path = model.residuals(test, max_lag=5), model.predict(test)
    left_out = np.isnan(test.y)
    left_out[: model.order.skip] = left_out[23, 0] = left_out[41, 1] = True  # the first rows, and the values after gaps
    np.testing.assert_array_equal(np.isnan(residuals.errors), left_out)
    np.testing.assert_allclose(residuals.errors[~left_out], (test.y - path.mean)[~left_out])
    assert residuals.counts == (60 - model.order.skip - 4, 60 - model.order.skip - 2)
    used = np.where(left_out, np.nan, test.y)
    expected = 1.0 - np.nanmean(residuals.errors**2, axis=0) / np.nanvar(used, axis=0)
    np.testing.assert_allclose(residuals.explained, expected)
    assert residuals.autocorrelation.shape == (6, 2) and residuals.cross_correlation.shape == (11, 2, 1)
    assert residuals.cross_lags.tolist() == list(range(-5, 6)) and residuals.max_lag == 5
    assert len(repr(residuals)) < 200


def test_a_perfect_model_and_a_constant_input_are_no_findings():
    u = np.random.default_rng(0).normal(size=200)
    record = revarb.Series(u, np.convolve(u, [0.0, 1.0, 0.5])[:200])
    model = revarb.ARX(lags=1, input_lags=2).fit(record)
    residuals = model.residuals(record)
    assert (residuals.sentence, residuals.white, residuals.explained[0]) == (NOTHING, (True,), 1.0)
    still = revarb.Series(np.full(200, 0.1), 0.01 * np.random.default_rng(1).normal(size=200))
    assert model.residuals(still).independent == (True,)
    assert isinstance(model.residuals(still).plot(), Figure)


def test_a_system_without_inputs():
    rng = np.random.default_rng(2)
    residuals = analyse(coloured(rng, (300, 1), 0.6), None)
    assert residuals.cross_correlation.shape == (51, 1, 0) and residuals.independent == (True,)
    assert residuals.sentence.startswith("the residuals are not white (lag 1: 0.")
    assert isinstance(residuals.plot(), Figure)


def after(values, lag):
    """The signal `lag` samples later."""
    return np.concatenate([np.zeros(lag), values[: len(values) - lag]])


@pytest.mark.parametrize(
    ("make", "order", "sentence"),
    [
        (lambda u, e: e + after(u, 4), ORDER, "still follow input 'u' (lag 4: 0.7"),
        (lambda u, e: e + after(u, 4), Order(2, 2, 5), "try a smaller input delay (input_delay=4)"),
        (lambda u, e: e + after(u, 2), ORDER, "the model has this lag and does not use it fully"),
        (lambda u, e: e + 0.05 * after(u, 4), ORDER, "(lag 4: 0.07, 0.5 % of their variance): try more input"),
        (lambda u, e: e + 0.1 * after(u, 2), ORDER, "of their variance): too weak to be worth a change"),
        (lambda u, e: e + 0.03 * after(e, 1), ORDER, "of their variance): too weak to be worth a change"),
        (lambda u, e: e + 0.7 * after(e, 1), ORDER, "are not white (lag 1: 0.5"),
        (lambda u, e: e + 0.7 * after(e, 9), ORDER, "try more lags (lags=9 or more)"),
        (lambda u, e: e + 0.3, ORDER, "have an offset: the output is above its predictions on average"),
        (lambda u, e: e - 0.3, ORDER, "the output is below"),
    ],
)
def test_sentences_name_the_finding_and_the_remedy(make, order, sentence):
    rng = np.random.default_rng(11)
    u, e = rng.normal(size=(2, 3000))
    assert sentence in analyse(make(u, e), u, order, skip=10).sentence


@pytest.mark.parametrize(
    ("make", "order", "sentence"),
    [
        (
            lambda u, e: e + after(u, 4),
            Order(2, 2, 5),
            "try a configuration of your own with a smaller input delay (inpu",
        ),
        (lambda u, e: e + after(u, 4), ORDER, "try a configuration of your own with more input lags (input_lags=4 or "),
        (lambda u, e: e + after(u, 2), ORDER, "use it fully; try training records like this one, or longer ones"),
        (lambda u, e: e + 0.7 * after(e, 1), ORDER, "train on a longer record, or add an input that is missing"),
        (
            lambda u, e: e + 0.7 * after(e, 9),
            ORDER,
            "try a configuration of your own with more lags (lags=9 or more), or",
        ),
    ],
)
def test_a_chosen_model_is_not_advised_to_be_chosen(make, order, sentence):
    rng = np.random.default_rng(11)
    u, e = rng.normal(size=(2, 3000))
    said = analyse(make(u, e), u, order, skip=10, chosen=True).sentence
    assert sentence in said and "revarb.fit" not in said


def test_residuals_know_whether_their_model_was_chosen():
    record = small.record(samples=200)
    plain = revarb.ARX(2, 2).fit(record)
    candidate = revarb.Candidate("linear", 0.1, 0.0, 12, 1.0, "taken")
    chosen = replace(plain, choice=revarb.Choice((candidate,), "linear", "It is the best.", "cold runs"))
    assert [model.residuals(record).chosen for model in (plain, chosen)] == [False, True]


def test_feedback_is_named_and_is_no_fault():
    rng = np.random.default_rng(12)
    e = rng.normal(size=800)
    u = rng.normal(size=800) - after(e, 3)  # a controller that answers three samples later
    residuals = analyse(e, u)
    assert residuals.independent == (True,)
    assert "come before input 'u' (lag -3: -0.7" in residuals.sentence and "feedback" in residuals.sentence


def test_outputs_are_named_where_there_are_several():
    rng = np.random.default_rng(13)
    u, e = rng.normal(size=600), rng.normal(size=(600, 6))
    e[:, 1] += after(u, 5)
    e[::2, 2] = np.nan  # never two values in a row
    residuals = analyse(e, u)
    first, second, rest = residuals.sentences
    assert first.startswith("the residuals of 'y1' still follow input 'u' (lag 5:")
    assert second == "the residuals of 'y2' are too few to judge (0 values; 20 are needed)"
    assert rest == "nothing is left in the residuals of the other 4 outputs"
    assert residuals.white == (True, True, None, True, True, True)
    (table,) = residuals.summary().tables
    assert [row[:2] for row in table.rows[:3]] == [("y0", "596"), ("y1", "596"), ("y2", "0")]
    assert table.rows[2][2:] == ("–", "–", "–")


def test_the_picture_and_the_summary_have_a_row_per_output():
    rng = np.random.default_rng(15)
    u, e = rng.normal(size=(300, 9)), rng.normal(size=(300, 3))
    e[:, 2] += after(u[:, 8], 3)
    residuals = analyse(e, u)
    figure = residuals.plot("a title")
    assert figure.get_suptitle() == "a title" and len(figure.axes) == 3 * 8  # of nine inputs six are drawn
    heads = [axes.get_title(loc="left") for axes in figure.axes[:8]]
    assert heads[0] == "autocorrelation" and heads[6] == "with u8" and heads[7].startswith("histogram")
    (table,) = residuals.summary().tables
    assert table.rows[2][4].startswith("u8: 0.7") and table.rows[2][4].endswith("at lag 3 *")
    one = residuals.plot(outputs=["y2"])
    assert len(one.axes) == 8 and one.axes[0].get_ylabel() == "y2"


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
    np.testing.assert_allclose(found.std**-2.0, [count for _, count in expected], rtol=1e-12)


def test_too_few_pairs_and_constant_signals_have_no_correlation(rng):
    a = rng.normal(size=50)
    lags = np.array([0, 50 - LEAST_PAIRS, 50 - LEAST_PAIRS + 1])
    found = correlate(a, a, lags).values
    assert np.isfinite(found).tolist() == [True, True, False] and found[0] == pytest.approx(1.0)
    assert np.isnan(correlate(a, np.full(50, 0.1), np.arange(3)).values).all()
    assert np.isnan(correlate(np.full(50, np.nan), a, np.arange(3)).values).all()


def test_the_variance_of_a_cross_correlation_of_coloured_signals():
    """Bartlett: (1 + ab) / (1 − ab) for two autoregressions; the drawn correlations have that variance too."""
    rng = np.random.default_rng(3)
    pairs = [(coloured(rng, (400,), 0.8), coloured(rng, (400,), 0.7)) for _ in range(300)]
    exact = (1.0 + 0.8 * 0.7) / (1.0 - 0.8 * 0.7)
    drawn = 400.0 * np.mean([correlate(e, u, np.array([0])).values[0] ** 2 for e, u in pairs])
    estimated = np.median([inflate_variance(e, u) for e, u in pairs])
    assert drawn == pytest.approx(exact, rel=0.2) and estimated == pytest.approx(exact, rel=0.2)
    assert inflate_variance(coloured(rng, (400,), -0.9), coloured(rng, (400,), 0.9)) == 1.0  # never narrower
