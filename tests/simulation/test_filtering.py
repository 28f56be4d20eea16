"""States inferred from measured outputs: filtering and fixed-lag smoothing."""

import numpy as np
import pytest

from revarb.data.windows import input_windows_after
from revarb.gp.posterior import predict_certain
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import StartState, locate_windows, make_cold_start
from revarb.simulation.filtering import filter_states, predict_ahead, smooth_means
from revarb.simulation.moments import run_moments
from support import small
from support.chains import smooth_chain


@with_numerics
def test_states_agree_with_weighted_samples(shallow_model):
    """Importance sampling of one step: states weighted by how well they explain y."""
    chain = smooth_chain(shallow_model.trained.chain, 0.02)
    rng, count = np.random.default_rng(2), 200_000
    start = make_cold_start(chain.latent_dims, chain.lags, shallow_model.order.reach, 1)
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
def test_predictions_ahead_are_runs_from_conditioned_states(shallow_model):
    chain, k = shallow_model.trained.chain, 3
    cold, u_bar, y = rows_of(shallow_model, small.with_gaps(small.record(4), 5))
    got = predict_ahead(chain, chain, cold, u_bar, y, shallow_model.order.reach, k)
    for row in (3, 4, 7, 30):
        before = row - k + 1
        state = filter_states(chain, cold, u_bar[:before], y[:before])
        run = run_moments(chain, StartState(state.mean, state.cov, cold.past_u), u_bar[before : row + 1], -1)
        np.testing.assert_allclose(got.mean[row], run.mean[-1], rtol=1e-9)
        np.testing.assert_allclose(got.variance[row], run.variance[-1], rtol=1e-9)


def rows_of(model, record):
    cold = model.resolve_start("cold").state
    z, y = model.preprocessor.check_window(record)
    return cold, input_windows_after(cold.past_u, z, model.order), y


@pytest.mark.parametrize(("rows", "states"), [(60, (0, 10, 57, 58, 59)), (2, (0, 1))])
@with_numerics
def test_a_state_is_inferred_from_outputs_until_it_leaves_its_window(wide_model, rows, states):
    """Also where the record is shorter than a window."""
    chain = wide_model.trained.chain
    cold, u_bar, y = rows_of(wide_model, small.with_gaps(small.record(4, outputs=2), (7, 0), (slice(20, 24), 1)))
    smoothed = smooth_means(chain, cold, u_bar[:rows], y[:rows])
    assert [mean.shape for mean in smoothed] == [(rows, 2), (rows, 1)]
    for state in states:
        last = min(state + 2, rows - 1)  # two samples later, or the last one
        joint = np.asarray(filter_states(chain, cold, u_bar[: last + 1], y[: last + 1]).mean)
        for mean, window in zip(smoothed, locate_windows(chain), strict=True):
            newest_first = joint[window].reshape(chain.lags, -1)
            np.testing.assert_allclose(mean[state], newest_first[last - state], rtol=1e-9, atol=1e-12)
