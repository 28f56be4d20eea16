"""GPSSM: training, starts, short records, Ctrl-C."""

from dataclasses import replace

import numpy as np
import pytest

import revarb
from revarb.baselines.mean import Mean
from revarb.baselines.state_space import gpssm
from revarb.baselines.state_space.gpssm import GPSSM
from revarb.baselines.training_rows import DelayedRecords
from revarb.errors import ComputationError
from revarb.models.recipe import Status
from support import small

QUICK = GPSSM(states=2, inducing=8, subsequence=20, window=4, batch=3, samples=2, updates=50)


@pytest.fixture(scope="module")
def model():
    return QUICK.fit(small.record())


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["markov", "mean-field"])
def test_a_toy_system_is_learnt(structure):
    spec = replace(QUICK, structure=structure, updates=300, batch=8, samples=4)
    assert small.rmse(spec) < 0.5 * small.rmse(Mean())


def test_runs_from_every_start(model):
    """The end of training is that of a window of all of it."""
    u, record = small.record(5).u, small.record()
    paths = [model.simulate(u, start=start) for start in ("cold", "continue", revarb.Window(record.u, record.y))]
    assert [path.start for path in paths] == ["cold", "continued", "window of 60 samples"]
    for path in paths:
        assert path.mean.shape == (60, 1) and (path.std > 0.0).all() and path.samples.shape == (200, 60, 1)
    np.testing.assert_allclose(paths[1].mean, paths[2].mean, rtol=1e-9)
    assert np.abs(paths[0].mean - paths[1].mean).max() > 1e-3
    assert model.simulate(u, "mean").std is None and model.skip == 20
    assert "prior" in str(model.summary()) and "process noise" in str(model.summary())


@pytest.mark.parametrize("delay", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_an_input_acts_after_its_delay(delay):
    """A changed input changes the outputs from `delay` rows later on, also one before the run."""
    model, u = replace(QUICK, input_delay=delay).fit(small.record()), small.record(5).u
    changed = u.copy()
    changed[10] += 1.0
    moved = np.flatnonzero((model.simulate(u, "mean").mean != model.simulate(changed, "mean").mean).any(axis=1))
    assert moved[0] == 10 + delay
    if delay:
        end = model.final_states[0]
        later = replace(end, past_u=end.past_u + np.eye(len(end.past_u))[:, -1:])  # the newest past input
        runs = [model.simulate(u, "mean", start=start).mean for start in (end, later)]
        assert np.flatnonzero((runs[0] != runs[1]).any(axis=1))[0] == delay - 1


@pytest.mark.slow
def test_records_shorter_than_the_longest_are_trained_on_too():
    model = replace(QUICK, subsequence=50).fit(small.record(samples=5))  # shorter than a subtrajectory
    assert np.isfinite(model.cold.cov).all()
    records = [small.record(0, samples=60), small.record(1, samples=12)]
    alone, both = (replace(QUICK, subsequence=20).fit(each) for each in (records[:1], records))
    data = gpssm._prepare(QUICK, DelayedRecords.from_records(records, 1))
    assert data.arrays.rows == 72 and data.arrays.starts[-1] == 60 and np.isnan(data.arrays.y[-8:]).all()
    assert alone.bound != both.bound


@pytest.mark.slow
def test_a_linear_mean_of_the_next_state_is_trained(model):
    fits = [
        replace(QUICK, mean="linear", learning_rate=rate).fit(small.record()) for rate in (QUICK.learning_rate, 1e-12)
    ]
    trained, start = (fit.transition.linear.coefficients for fit in fits)
    assert np.abs(trained - start).max() > 1e-3
    np.testing.assert_array_equal(model.transition.linear.coefficients, np.eye(3, 2))


@pytest.mark.slow
def test_ctrl_c_keeps_the_model_so_far_and_a_training_that_diverges_says_what_to_do(press_ctrl_c):
    with pytest.raises(ComputationError, match="smaller learning_rate"):
        replace(QUICK, learning_rate=1e6).fit(small.record())
    press_ctrl_c(gpssm, 0)
    model = replace(QUICK, updates=500).fit(small.record())
    assert model.status is Status.INTERRUPTED and np.isfinite(model.simulate(small.record(5).u).mean).all()
