"""States inferred from measured outputs: filtering and fixed-lag smoothing."""

import numpy as np
import pytest

from revarb.data.windows import input_windows_after
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import StartState, locate_windows
from revarb.simulation.filtering import filter_states, predict_ahead, smooth_means
from revarb.simulation.moments import run_moments
from support import small


@with_numerics
def test_predictions_ahead_are_runs_from_conditioned_states(shallow_model):
    chain, k = shallow_model.trained.chain, 3
    cold, u_bar, y = rows_of(shallow_model, small.with_gaps(small.record(4), 5))
    got, _ = predict_ahead(chain, chain, cold, u_bar, y, k, shallow_model.known_range)
    for row in (3, 4, 7, 30):
        before = row - k + 1
        state = filter_states(chain, cold, u_bar[:before], y[:before])
        run = run_moments(chain, StartState(state.mean, state.cov, cold.past_u), u_bar[before : row + 1])
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
