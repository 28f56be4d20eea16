"""GP-NARX: the exact GP on measured lags, the sparse one, and its propagated uncertainty."""

import numpy as np
import pytest

from revarb.analysis.scores import scores
from revarb.baselines.gp_narx import GPNARX, JITTER, MIN_NOISE_SPARSE, _compute_evidence, _Free
from revarb.data.series import Series
from revarb.fitting.arx import NarxRows, build_narx_rows, mark_complete
from revarb.gp.layer import inverse_softplus
from revarb.gp.posterior import predict_certain
from revarb.simulation.chain import StartState
from revarb.simulation.moments import run_moments
from support import oracles, small
from support.chains import correlated_start, monte_carlo, smooth_chain

SPEC = GPNARX(lags=2, input_lags=2)


@pytest.fixture(scope="module")
def model():
    return SPEC.fit(small.record())


def plain_rows(record, lags):
    """The rows of a NARX model by a plain loop, z-scored."""
    y = (record.y - record.y.mean(0)) / record.y.std(0)
    u = (record.u - record.u.mean(0)) / record.u.std(0)
    x_hat = oracles.layer_windows([y], u, lags, lags, 1, lags)[0]
    return x_hat, y[lags:]


def test_rows_are_measured_lags_and_never_cross_a_seam():
    records = [small.record(0), small.record(1, samples=30)]
    rows = build_narx_rows(SPEC.fit(records).preprocessor, records)
    everything = Series(np.concatenate([r.u for r in records]), np.concatenate([r.y for r in records]))
    x_hat, y = plain_rows(everything, 2)
    keep = np.r_[0:58, 60:88]  # without the rows that would look back over the seam
    np.testing.assert_allclose(rows.x_hat, x_hat[keep], atol=1e-12)
    np.testing.assert_allclose(rows.y, y[keep], atol=1e-12)


def test_with_known_states_it_is_the_exact_gp(model):
    """One step ahead at measured lags: the textbook's formula with the kernel that was found."""
    gp = model.chain.hidden[0]
    x, y = plain_rows(small.record(), 2)
    new, _ = plain_rows(small.record(5), 2)
    mean, variance = predict_certain(gp, new)
    inverse = np.linalg.inv(oracles.rbf(x, x, gp.w, gp.variance) + gp.sigma2 * np.eye(len(x)))
    cross = oracles.rbf(new, x, gp.w, gp.variance)
    np.testing.assert_allclose(mean, cross @ inverse @ y, atol=1e-7)
    np.testing.assert_allclose(variance, gp.variance - np.diag(cross @ inverse @ cross.T), atol=1e-7)
    assert model.evidence == pytest.approx(oracles.log_gaussian(y, np.linalg.inv(inverse)), abs=1e-5)


def test_no_small_change_of_the_kernel_has_more_evidence(model):
    gp = model.chain.hidden[0]
    x, y = plain_rows(small.record(), 2)
    for f, g, h in ((f, g, h) for f in (0.9, 1.0, 1.1) for g in (0.9, 1.0, 1.1) for h in (0.9, 1.0, 1.1)):
        K = oracles.rbf(x, x, f * gp.w, g * gp.variance) + h * gp.sigma2 * np.eye(len(x))
        assert oracles.log_gaussian(y, K) <= model.evidence + 1e-3


def test_many_inducing_inputs_come_close_to_the_exact_gp(model):
    sparse = GPNARX(lags=2, input_lags=2, inducing=40).fit(small.record())
    assert len(sparse.chain.hidden[0].zeta) == 40 and sparse.evidence <= model.evidence + 1e-3
    assert sparse.evidence == pytest.approx(model.evidence, abs=2.0)
    u = small.record(4).u
    np.testing.assert_allclose(sparse.simulate(u, "mean").mean, model.simulate(u, "mean").mean, atol=0.05)
    long = GPNARX(lags=2, input_lags=2, iterations=3).fit(small.record(samples=1100))  # gets inducing inputs
    assert len(long.chain.hidden[0].zeta) == 200


def test_the_bound_is_right_where_the_noise_is_small_and_the_kernel_long():
    """Inducing inputs that the kernel hardly tells apart: the rounding of Ψ2 made the bound NaN there."""
    rows = NarxRows(*plain_rows(small.record(samples=200), 2))
    zeta, w, variance, sigma2 = rows.x_hat[:60], np.full(4, 0.01), 30.0, 1e-4
    raw = (np.asarray(inverse_softplus(value)) for value in (w, variance, sigma2 - MIN_NOISE_SPARSE))
    bound, slopes = _compute_evidence(_Free(zeta, *raw), rows)
    K = oracles.rbf(zeta, zeta, w, variance) + JITTER * variance * np.eye(60)
    V = np.linalg.solve(np.linalg.cholesky(K), oracles.rbf(zeta, rows.x_hat, w, variance))
    missing = len(rows.y) * variance - np.sum(V**2)
    expected = oracles.log_gaussian(rows.y, V.T @ V + sigma2 * np.eye(len(rows.y))) - 0.5 * missing / sigma2
    assert bound == pytest.approx(expected, rel=1e-6)
    assert all(np.isfinite(each).all() for each in slopes)


@pytest.mark.slow
def test_moments_agree_with_monte_carlo(rng):
    """10⁵ trajectories from a narrow correlated start: one step is exact, the next match moments."""
    chain = smooth_chain(SPEC.fit(small.record(outputs=2)).chain, 1e-3)
    start = correlated_start(chain, rng, scale=0.2)
    u_bar = rng.uniform(-1, 1, size=(3, 2))
    got = run_moments(chain, start, u_bar)
    drawn = monte_carlo(chain, start, u_bar, 100_000, rng)
    std = drawn.std(0)
    np.testing.assert_allclose(got.mean, drawn.mean(0), atol=0.02 * std.max())
    np.testing.assert_allclose(np.sqrt(got.variance), std, rtol=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("inducing", "noise"), [(None, 1e-4), (50, 1e-5)])
def test_a_record_without_noise_has_a_band(inducing, noise):
    """Moments are differences of large numbers there; they stay finite, and agree with drawn trajectories."""
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, size=300)
    y = np.zeros(300)
    for k in range(1, 300):
        y[k] = 0.7 * y[k - 1] + 0.6 * np.tanh(2.0 * u[k - 1])
    model = GPNARX(lags=2, input_lags=2, inducing=inducing).fit(Series(u[:150], y[:150]))
    assert model.chain.hidden[0].sigma2 == pytest.approx(noise, rel=1e-2)
    moments, samples = model.simulate(u[150:]), model.simulate(u[150:], "samples", samples=1000)
    assert np.isfinite(moments.mean).all() and (moments.std > 0.0).all()
    np.testing.assert_allclose(moments.std[20:], samples.std[20:], rtol=0.25)
    result = scores(moments, y[150:])
    assert result.nrmse < 0.05 and result.coverage95 >= 0.9


def rows_of(model, record):
    """Windows of z-scored inputs, at their mean before the record, and z-scored outputs."""
    z = np.concatenate([np.zeros((2, 1)), model.scaling.inputs(record.u)])
    return np.column_stack([z[1:-1], z[:-2]]), model.scaling.outputs(record.y)


def run_after(model, record, row, steps):
    """Moments of a run from known outputs: two lags, newest first."""
    u_bar, y = rows_of(model, record)
    start = StartState(y[row - 1 : row + 1][::-1].ravel(), np.zeros((2, 2)), np.zeros((2, 1)))
    return run_moments(model.chain, start, u_bar[row + 1 : row + 1 + steps])


def check_rows(model, path, rows, means, variances):
    """Mean and variance of some rows are the expected ones, z-scored."""
    np.testing.assert_allclose(model.scaling.outputs(path.mean)[rows], means, atol=1e-8)
    np.testing.assert_allclose((path.std / model.scaling.y_std)[rows] ** 2, variances, rtol=1e-6)


@pytest.mark.parametrize("outputs", [1, 2])
def test_one_step_ahead_is_the_gp_at_measured_lags(outputs):
    record = small.record(3, outputs=outputs)
    model = SPEC.fit(small.record(outputs=outputs))
    (u_bar, y), path, gp = rows_of(model, record), model.predict(record), model.chain.hidden[0]
    mean, variance = predict_certain(gp, np.hstack([y[1:-1], y[:-2], u_bar[2:]]))
    check_rows(model, path, range(2, 60), mean, np.tile(variance[:, None] + gp.sigma2, outputs))
    assert (path.method, path.start, path.skip) == ("moments", "1 step ahead", model.order.skip)


def test_several_steps_ahead_propagate_moments_from_measured_lags(model):
    record, rows = small.record(3), range(5, 60, 6)
    path, runs = model.predict(record, 4), [run_after(model, record, row - 4, 4) for row in rows]
    check_rows(model, path, rows, [run.mean[-1] for run in runs], [run.variance[-1] for run in runs])
    np.testing.assert_array_equal(path.mean[:4], model.simulate(record.u).mean[:4])


def test_a_prediction_right_after_a_gap_is_one_over_the_gap(model):
    """What is not known of missing outputs is in the band; after two measured ones it is over."""
    record = small.record(3)
    path = model.predict(small.with_gaps(record, slice(30, 33)))
    run = run_after(model, record, 29, 4)
    check_rows(model, path, range(30, 34), run.mean, run.variance)
    complete = model.predict(record)
    same = [*range(30), *range(35, 60)]
    np.testing.assert_allclose(path.mean[same], complete.mean[same], rtol=1e-9)
    np.testing.assert_allclose(path.std[same], complete.std[same], rtol=1e-9)


def test_rows_that_a_gap_touches_are_left_out():
    """The fit to two records that end where the gap begins and begin where it ends is the same."""
    record = small.with_gaps(small.record(samples=80), slice(40, 43))
    with_gap = SPEC.fit(record)
    rows, expected = (build_narx_rows(with_gap.preprocessor, each) for each in ([record], [record[:40], record[43:]]))
    complete = mark_complete(rows)
    np.testing.assert_allclose(rows.x_hat[complete], expected.x_hat)
    np.testing.assert_allclose(rows.y[complete], expected.y)
    np.testing.assert_allclose(with_gap.chain.hidden[0].zeta, expected.x_hat)
