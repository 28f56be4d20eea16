"""States inferred from measured outputs, and predictions that set out from them."""

from dataclasses import replace

import numpy as np
import pytest

import revarb
import small
from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Window
from revarb.data.windows import Order
from revarb.errors import InputError
from revarb.gp.posterior import predict_certain
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import StartState, cold_start
from revarb.simulation.filtering import filter_states, predict_ahead, update
from revarb.simulation.moments import JointState, OutputMoments, run_moments
from test_simulate import smooth_chain


@pytest.fixture(scope="module")
def model():
    return small.spec(hidden=1).fit(small.record(samples=80))


def test_a_gaussian_is_conditioned_as_the_textbook_says():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    whole = root @ root.T + 0.1 * np.eye(5)
    state, seen = JointState(np.zeros(3), whole[:3, :3]), OutputMoments(np.ones(2), whole[3:, 3:], whole[:3, 3:])
    y = np.array([0.3, -0.4])
    got = update(state, seen, y)
    gain = whole[:3, 3:] @ np.linalg.inv(whole[3:, 3:])
    np.testing.assert_allclose(got.mean, gain @ (y - 1.0), rtol=1e-5)
    np.testing.assert_allclose(got.cov, whole[:3, :3] - gain @ whole[:3, 3:].T, rtol=1e-4, atol=1e-6)


def test_what_is_missing_is_not_conditioned_on():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(5, 5))
    whole = root @ root.T + 0.1 * np.eye(5)
    state, seen = JointState(np.zeros(3), whole[:3, :3]), OutputMoments(np.ones(2), whole[3:, 3:], whole[:3, 3:])
    one = update(state, seen, np.array([0.3, np.nan]))
    alone = update(state, OutputMoments(seen.mean[:1], seen.cov[:1, :1], seen.cross[:, :1]), np.array([0.3]))
    np.testing.assert_allclose(one.mean, alone.mean, rtol=1e-5)
    none = update(state, seen, np.full(2, np.nan))
    np.testing.assert_allclose(none.cov, state.cov, rtol=1e-6)


@with_numerics
def test_states_agree_with_weighted_samples(model):
    """Importance sampling of one step: states weighted by how well they explain y."""
    chain = smooth_chain(model.trained.chain, 0.02)
    rng, count = np.random.default_rng(2), 200_000
    start = cold_start(chain.latent_dims, chain.lags, model.order.reach, 1)
    start = StartState(start.mean, 0.05 * start.cov, start.past_u)
    u_bar = np.zeros((1, chain.hidden[0].zeta.shape[1] - chain.lags))
    y = np.array([[0.2]])
    got = filter_states(chain, start, u_bar, y)
    drawn = rng.multivariate_normal(start.mean, start.cov, size=count)
    x_hat = np.hstack([drawn, np.zeros((count, u_bar.shape[1]))])
    layer, output = chain.hidden[0], chain.output
    mean, variance = (np.asarray(part) for part in predict_certain(layer, x_hat))
    x = mean[:, 0] + np.sqrt(variance + float(layer.sigma2)) * rng.normal(size=count)
    window = np.column_stack([x, drawn[:, : chain.lags - 1]])
    f, spread = (np.asarray(part) for part in predict_certain(output, window))
    total = spread + float(output.sigma2)
    weights = np.exp(-0.5 * (y[0, 0] - f[:, 0]) ** 2 / total) / np.sqrt(total)
    expected = np.average(window, weights=weights, axis=0)
    np.testing.assert_allclose(np.asarray(got.mean), expected, atol=0.02)


@with_numerics
def test_predictions_ahead_are_runs_from_conditioned_states(model):
    chain, record, k = model.trained.chain, small.record(4), 3
    cold = model.origin("cold").state
    z, y = model.preprocessor.check_window(record)
    y = y.copy()
    y[5] = np.nan
    u_bar = input_windows_after(cold.past_u, z, model.lags)
    got = predict_ahead(chain, chain, cold, u_bar, y, model.order.reach, k)
    for row in (3, 4, 7, 30):
        before = row - k + 1
        state = filter_states(chain, cold, u_bar[:before], y[:before])
        run = run_moments(chain, StartState(state.mean, state.cov, cold.past_u), u_bar[before : row + 1], -1)
        np.testing.assert_allclose(got.mean[row], run.mean[-1], rtol=1e-9)
        np.testing.assert_allclose(got.variance[row], run.variance[-1], rtol=1e-9)


def test_a_measured_window_beats_a_cold_start(model):
    record = small.record(7, samples=80)
    window = Window(record.u[:20], record.y[:20])
    warm = model.simulate(record.u[20:30], start=window)
    cold = model.simulate(record.u[20:30])
    assert warm.start == "window of 20 samples" and cold.start == "cold" and warm.skip == 0
    error = [np.abs(path.mean[:3] - record.y[20:23]).mean() for path in (warm, cold)]
    assert error[0] < 0.7 * error[1] and warm.std[0] < cold.std[0]


def test_it_is_the_outputs_of_a_window_that_tell(model):
    record = small.record(7, samples=160)
    errors = []
    for begin in range(0, 140, 7):
        seen, next_one = slice(begin, begin + 8), begin + 8
        for y in (record.y[seen], np.full((8, 1), np.nan)):
            path = model.simulate(record.u[next_one : next_one + 1], start=Window(record.u[seen], y))
            errors.append(float(path.mean[0, 0] - record.y[next_one, 0]) ** 2)
    known, unknown = np.mean(np.reshape(errors, (-1, 2)), axis=0)
    assert known < 0.9 * unknown


def test_one_step_ahead_is_better_than_many(model):
    record = small.record(8, samples=80)
    one, many = (revarb.scores(model.predict(record, horizon), record.y, skip=10) for horizon in (1, 20))
    assert one.rmse < many.rmse and one.nlpd < many.nlpd
    path = model.predict(record, 2)
    assert path.start == "2 steps ahead" and path.method == "moments" and len(path) == len(record)
    np.testing.assert_allclose(model.predict(record, horizon=1000).mean, model.simulate(record.u).mean)  # a cold run


def test_a_window_may_have_gaps(model):
    record = small.record(7)
    y = record.y[:20].copy()
    y[3:6] = np.nan
    path = model.simulate(record.u[20:], start=Window(record.u[:20], y))
    assert np.isfinite(path.mean).all()
    nothing = model.simulate(record.u[20:], start=Window(record.u[:20], np.full((20, 1), np.nan)))
    assert (nothing.std[0] > path.std[0]).all()


def test_going_on_where_training_ended(model):
    u = small.record(3).u
    went_on = model.simulate(u, start="continue")
    assert went_on.start == "continued"
    np.testing.assert_array_equal(went_on.mean, model.simulate(u, start=model.final_states[-1]).mean)


def test_an_ensemble_takes_the_same_starts():
    ensemble = small.spec(hidden=1).fit(small.record(samples=80), restarts=2)
    record = small.record(5)
    window = Window(record.u[:20], record.y[:20])
    for start in ("continue", window):
        path = ensemble.simulate(record.u[20:], start=start)
        each = [member.simulate(record.u[20:], start=start).mean for member in ensemble.members]
        np.testing.assert_allclose(path.mean, np.mean(each, axis=0))
    assert ensemble.predict(record, 2).start == "2 steps ahead"


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (Window(np.zeros((20, 2)), np.zeros(20)), r"the record has 2 input\(s\), but the model 1"),
        (Window(np.zeros(20), np.zeros((20, 2))), r"the record has 2 output\(s\), but the model 1"),
        (Window(np.zeros(1), np.zeros(1)), "has 1 samples, but the lags need at least 2"),
    ],
)
def test_a_start_that_does_not_fit_is_refused(model, start, message):
    with pytest.raises(InputError, match=message):
        model.simulate(np.zeros(9), start=start)


def test_columns_in_another_order_are_refused():
    record = small.record(inputs=2)
    prep = Preprocessor.from_records([record], Order(2, 2, 1))
    turned = revarb.Series(record.u, record.y, input_names=["u1", "u0"])
    with pytest.raises(InputError, match=r"has the columns \['u1', 'u0'\], the model \['u0', 'u1'\]; reorder"):
        prep.check_window(turned)


def test_predict_refuses_no_horizon(model):
    with pytest.raises(InputError, match="horizon must be a whole number from 1 to"):
        model.predict(small.record(), 0)
    assert replace(model, calibration=None).chain is model.trained.chain
