"""Fixed-lag smoothing of latent states."""

import numpy as np
import pytest

from revarb.data.windows import input_windows_after
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import locate_windows
from revarb.simulation.filtering import filter_states
from revarb.simulation.smoothing import smooth_means
from support import small


@pytest.fixture(scope="module")
def deep_model():
    return small.spec(lags=3, latent_dim=(2, 1)).fit(small.record(outputs=2))


def rows_of(model, record):
    cold = model.resolve_start("cold").state
    z, y = model.preprocessor.check_window(record)
    return cold, input_windows_after(cold.past_u, z, model.order), y


@with_numerics
def test_a_state_is_inferred_from_outputs_until_it_leaves_its_window(deep_model):
    chain = deep_model.trained.chain
    cold, u_bar, y = rows_of(deep_model, small.with_gaps(small.record(4, outputs=2), (7, 0), (slice(20, 24), 1)))
    smoothed = smooth_means(chain, cold, u_bar, y)
    assert [mean.shape for mean in smoothed] == [(60, 2), (60, 1)]
    for state, last in ((0, 2), (10, 12), (57, 59), (58, 59), (59, 59)):  # two samples later, or the last one
        joint = np.asarray(filter_states(chain, cold, u_bar[: last + 1], y[: last + 1]).mean)
        for mean, window in zip(smoothed, locate_windows(chain), strict=True):
            newest_first = joint[window].reshape(chain.lags, -1)
            np.testing.assert_allclose(mean[state], newest_first[last - state], rtol=1e-9, atol=1e-12)


@with_numerics
def test_a_record_that_is_shorter_than_a_window(deep_model):
    chain = deep_model.trained.chain
    cold, u_bar, y = rows_of(deep_model, small.record(4, outputs=2))
    smoothed = smooth_means(chain, cold, u_bar[:2], y[:2])
    joint = np.asarray(filter_states(chain, cold, u_bar[:2], y[:2]).mean)
    for mean, window in zip(smoothed, locate_windows(chain), strict=True):
        np.testing.assert_allclose(mean, joint[window].reshape(chain.lags, -1)[1::-1], rtol=1e-9)
