"""Cold starts: the distribution over the training records, how long it counts, and what it adds to a band."""

from dataclasses import replace

import numpy as np
import pytest

from revarb.data.preprocessor import Preprocessor
from revarb.data.series import Series, Window
from revarb.data.windows import Order
from revarb.fitting.arx import fit_rows
from revarb.gp.layer import Linear
from revarb.gp.posterior import Posterior
from revarb.models.fitted_arx import FittedARX
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.mean import factorise_covariance, run_mean_spread
from revarb.simulation.run import limit_skip
from revarb.simulation.settling import MAX_ROWS, SETTLED, Settling, measure_settling, scale_settling
from revarb.simulation.starts import make_level_start
from support import small
from support.chains import exact_layer, make_layer

ORDER = Order(3, 2, 1)


def fit_order(record, order=ORDER):
    prep = Preprocessor.from_records([record], order)
    return FittedARX.from_records([record], prep, fit_rows(prep, [record]), np.array([0.2]))


def fit_linear(record):
    return fit_order(record, Order(1, 1, 6))


def test_the_start_has_the_windows_of_the_training_rows(model):
    start, states = model.cold_start, model.trained.parameters.states
    windows, variances = [], []
    for row in range(model.spec.lags, model.lengths[0]):
        newest_first = slice(row, row - model.spec.lags if row > model.spec.lags else 0, -1)
        windows.append(np.concatenate([np.asarray(mu)[newest_first].ravel() for mu in states.mu]))
        variances.append(np.concatenate([np.asarray(lam)[newest_first].ravel() for lam in states.lam]))
    np.testing.assert_allclose(start.mean, np.mean(windows, axis=0), atol=1e-12)
    np.testing.assert_allclose(start.cov, np.cov(np.transpose(windows), bias=True) + np.diag(np.mean(variances, 0)))
    assert not start.past_u.any()


def test_a_cold_band_begins_as_wide_as_y_and_narrows_without_a_jump(model):
    record = small.record(3)
    path = model.simulate(record.u)
    stds = path.std[:, 0] / record.y.std()
    assert 0.5 < stds[0] < 1.5 and stds[path.skip] < 0.3
    assert (np.diff(stds[: path.skip]) < 0.1).all()


def test_shares_are_those_of_two_runs(model):
    """A run from the distribution, and one from its mean, at inputs at their training mean."""
    settling = model.settling
    rest = np.tile(model.scaling.u_mean, (len(settling.shares), 1))
    mean, cov, past_u = model.cold_start.mean, model.cold_start.cov, model.cold_start.past_u
    starts = [StartState(mean, each, past_u) for each in (cov, np.zeros_like(cov))]
    seen, exact = (model.simulate(rest, start=start).std ** 2 / model.scaling.y_std**2 for start in starts)
    np.testing.assert_allclose(settling.variance, seen, rtol=1e-9)
    shares = 1.0 - exact / (seen + settling.unseen)
    # What unseen inputs add is scaled with the shares, which are larger without.
    np.testing.assert_array_less(shares.max(axis=1) - 0.06, settling.shares)
    np.testing.assert_array_less(settling.shares, shares.max(axis=1) + 1e-9)
    assert settling.shares[-1] == 0.0 < settling.shares[-2] and not settling.unseen[-1].any()
    assert model.skip == len(settling.shares) - 1 == model.simulate(np.zeros((60, 1))).skip


def test_shares_never_rise_and_scores_wait_for_them():
    variance, unseen = np.ones((4, 1)), np.array([[0.3], [0.2], [0.1], [0.1]])
    found = scale_settling(Settling(np.array([0.9, 0.2, 0.4, 0.01]), variance, unseen))
    expected = (np.array([0.9, 0.4, 0.4, SETTLED]) - SETTLED) / (1.0 - SETTLED)
    np.testing.assert_allclose(found.shares, expected)
    np.testing.assert_allclose(found.unseen[:, 0], unseen[:, 0] * expected / [0.9, 0.4, 0.4, 1.0])
    forever = scale_settling(Settling(np.full(20, 0.5), np.ones((20, 1)), np.zeros((20, 1))))
    assert len(forever.shares) == forever.rows == 20 and found.rows == 3
    assert (limit_skip(7, 40), limit_skip(30, 40), limit_skip(-2, 40)) == (7, 20, 0)


def test_a_system_that_never_forgets_is_measured_to_the_end():
    """It keeps its state, but for a little noise."""
    grid = np.linspace(-4.0, 4.0, 33)[:, None]
    layer = exact_layer(make_layer(grid, np.array([1.0]), 1.0, 1e-6), grid)
    line = Linear(np.eye(1), np.zeros(1))
    layer = Posterior(layer.zeta, layer.w, layer.variance, layer.sigma2, 0.0 * layer.beta, layer.reduction, line)
    start = StartState(np.zeros(1), 0.1 * np.eye(1), np.zeros((0, 0)))
    shares = measure_settling(Chain((layer,), None, 1), start, Order(1, 0, 1)).shares
    assert len(shares) == MAX_ROWS and shares[-1] > 0.5


def delayed_record(seed, samples=240):
    """Inputs act after six samples, and there is no other memory."""
    rng = np.random.default_rng(seed)
    u = np.repeat(rng.uniform(-1.0, 1.0, samples // 4), 4)
    y = np.concatenate([np.zeros(6), np.tanh(2.0 * u[:-6])])
    return Series(u, y + 0.02 * rng.normal(size=samples))


@pytest.mark.parametrize("fit", [small.spec(lags=1, input_lags=1, input_delay=6, hidden=1).fit, fit_linear])
def test_a_band_counts_the_inputs_before_the_run(fit):
    """Without them the band would be that of the noise as soon as the states have left their windows."""
    model, errors = fit(delayed_record(0)), []
    for begin in range(20, 220, 7):
        record = delayed_record(1)[begin : begin + 12]
        path = model.simulate(record.u)
        errors.append(((record.y - path.mean) / path.std)[:, 0])
    sizes = np.sqrt(np.mean(np.square(errors), axis=0))
    assert (sizes[:6] > 0.4).all() and (sizes[:6] < 1.6).all()
    assert 6 <= path.skip < 9 and path.std[5] > 3.0 * path.std[-1]


def make_linear(records):
    prep = Preprocessor.from_records(records, Order(2, 1, 1))
    coefficients = np.array([[1.1, 0.1], [0.0, 0.7], [-0.4, 0.0], [0.05, 0.1], [0.5, 0.3]])
    return prep, Chain((Linear(coefficients, np.array([0.1, 0.0])),), None, 2)


def test_the_spread_of_a_linear_model_is_its_propagated_covariance(rng):
    prep, chain = make_linear([small.record(outputs=2)])
    root = rng.normal(size=(4, 3))
    start = replace(make_level_start(prep), cov=root @ root.T)
    assert factorise_covariance(start.cov).shape == (3, 4)
    u_bar = rng.normal(size=(12, 1))
    mean, variance = run_mean_spread(chain, start, u_bar)
    step, cov = np.eye(4, k=-2), start.cov
    step[:2] = np.asarray(chain.hidden[0].coefficients)[:4].T
    for row in variance:
        cov = step @ cov @ step.T
        np.testing.assert_allclose(row, np.diag(cov)[:2], rtol=1e-10)
    exact, nothing = run_mean_spread(chain, replace(start, cov=np.zeros((4, 4))), u_bar)
    np.testing.assert_allclose(exact, mean, rtol=1e-12)
    assert not nothing.any()


@pytest.mark.usefixtures("same_width_beyond")
def test_a_linear_model_knows_how_its_outputs_varied():
    record = small.record(samples=200)
    model = fit_order(record)
    y = model.scaling.outputs(record.y)[:, 0]
    windows = np.array([y[row : row - 3 : -1] for row in range(3, 200)])
    np.testing.assert_allclose(model.cold_start.cov, windows.T @ windows / len(windows), rtol=1e-12)
    path = model.simulate(record.u)
    assert 0.6 < path.std[0, 0] / record.y.std() < 1.5
    assert path.std[-1] == pytest.approx(model.scaling.raw_std(model.residual_std), rel=1e-6)
    old = replace(model, output_cov=None)  # a file without it: an unknown level
    np.testing.assert_array_equal(old.cold_start.cov, np.ones((3, 3)))


@pytest.mark.parametrize("samples", [1, 2])
def test_what_a_short_window_does_not_show_follows_from_what_it_shows(samples):
    """As far as the model explains it; past values at an unknown level follow the measured ones."""
    record = small.record(samples=200)
    model = fit_order(record)
    window = Window(record.u[:samples], record.y[:samples])
    state, y = model.resolve_start(window).state, model.scaling.outputs(record.y)[:samples, 0][::-1]
    np.testing.assert_allclose(state.mean[:samples], y, rtol=1e-12)
    assert not state.cov[:samples].any()
    assert (np.diag(state.cov)[samples:] > 0.0).all()
    assert (np.diag(state.cov)[samples:] < np.diag(model.cold_start.cov)[samples:]).all()
    level = replace(model, output_cov=None).resolve_start(window).state
    shares = level.mean[samples:] / y.mean()
    np.testing.assert_allclose(shares, shares[0], rtol=1e-9)
    assert 0.1 < shares[0] < 1.0


def test_one_measured_sample_is_worth_more_than_none(model):
    errors = []
    for seed in range(3, 9):
        record = small.record(seed)
        cold = model.simulate(record.u).mean[1:6]
        warm = model.simulate(record.u[1:], start=Window(record.u[:1], record.y[:1])).mean[:5]
        errors.append([np.sum((each - record.y[1:6]) ** 2) for each in (cold, warm)])
    cold, warm = np.sum(errors, axis=0)
    assert warm < 0.7 * cold


def test_windows_with_gaps_are_left_out():
    record = small.record(samples=60)
    found = fit_order(small.with_gaps(record, slice(5, 40)))
    assert 0.1 < found.output_cov[0, 0] < 3.0
