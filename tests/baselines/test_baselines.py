"""What every baseline has in common with RGP: records in, a Trajectory in raw units out."""

from functools import cache

import numpy as np
import pytest

from revarb.baselines import GPSSM, Mean, ReducedRankGPSSM
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError
from support import small
from support.small_rivals import QUICK_MODELS

STATE_SPACE = {
    "GP-SSM": GPSSM(states=2, inducing=8, subsequence=20, window=4, batch=3, samples=2, updates=50),
    "reduced-rank GP-SSM": ReducedRankGPSSM(states=2, basis=20, particles=6, burn_in=30, draws=20, thinning=2),
}
MODELS = QUICK_MODELS | STATE_SPACE
RANDOM = ("MLP-NARX", "LSTM", "GP-NARX, sparse", "RGP", *STATE_SPACE)
SLOW = ("RGP", *STATE_SPACE)  # fits of RGP are tested in tests/fitting
every_model = pytest.mark.parametrize("name", MODELS)
slow_or_quick = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in MODELS]
)
RECORD, U = small.record(), small.record(5).u


@cache
def trained(name, seed=3):
    return MODELS[name].fit(RECORD, seed=seed)


@slow_or_quick
def test_several_records_inputs_and_outputs(name):
    records = [small.record(seed, samples=length, inputs=2, outputs=2) for seed, length in ((0, 50), (1, 40))]
    if name != "LSTM":  # which needs every output value
        records[0] = small.with_gaps(records[0], (slice(10, 15), 0), (slice(20, 22), 1))
    model = MODELS[name].fit(records)
    u = small.record(5, inputs=2).u
    for method in model.methods:
        path = model.simulate(u, method)
        assert isinstance(path, Trajectory) and path.mean.shape == (60, 2)
        assert np.isfinite(path.mean).all() and path.method == method
        assert path.std is None if method == "mean" else (path.std > 0.0).all()
    if name in STATE_SPACE:
        assert len(model.final_states) == 2 and np.isfinite(model.simulate(u, start="continue").std).all()


@slow_or_quick
def test_many_records_and_a_system_without_inputs(name):
    """Of many records whole ones are held out."""
    model = MODELS[name].fit([small.record(seed, samples=25) for seed in range(5)])
    assert np.isfinite(model.simulate(U).mean).all()
    y = np.sin(0.4 * np.arange(80.0)) + 0.01 * np.random.default_rng(0).normal(size=80)
    model = MODELS[name].fit(Series(None, y))
    assert model.simulate(steps=12).mean.shape == (12, 1)
    with pytest.raises(InputError, match="steps"):
        model.simulate()


@every_model
def test_same_seed_same_numbers_and_another_seed_another_start(name):
    mean = trained(name).simulate(U).mean
    np.testing.assert_array_equal(MODELS[name].fit(RECORD, seed=3).simulate(U).mean, mean)
    if name in RANDOM:
        assert np.abs(MODELS[name].fit(RECORD, seed=0).simulate(U).mean - mean).max() > 1e-9


@pytest.mark.parametrize("name", QUICK_MODELS)
def test_raw_units_go_in_and_come_out(name):
    scaled = Series(1000.0 * RECORD.u - 7.0, 0.01 * RECORD.y + 50.0)
    plain, moved = trained(name).simulate(U), MODELS[name].fit(scaled, seed=3).simulate(1000.0 * U - 7.0)
    np.testing.assert_allclose(moved.mean, 0.01 * plain.mean + 50.0, atol=2e-4)
    np.testing.assert_allclose(moved.std, 0.01 * plain.std, rtol=0.02)


@every_model
def test_wrong_arguments_are_refused(name):
    with pytest.raises(InputError, match="u has 1 value"):
        trained(name).simulate([0.0, 0.0, 0.0, np.nan, 0.0])
    with pytest.raises(InputError, match="seed must be a whole number"):
        MODELS[name].fit(RECORD, seed=-1)
    with pytest.raises(InputError, match="output column 'y' is constant"):
        MODELS[name].fit(Series(RECORD.u, np.ones(60)))


def test_the_mean_is_that_of_what_was_measured():
    gaps = (slice(3, 9), 0), (slice(50, 55), 0), (slice(45, None), 1)
    for train in (small.record(outputs=2), small.with_gaps(small.record(outputs=2), *gaps)):
        path = Mean().fit(train).simulate(np.zeros(4))
        np.testing.assert_allclose(path.mean, np.tile(np.nanmean(train.y, axis=0), (4, 1)))
        tail = train.y[45:] - np.nanmean(train.y[:45], axis=0)
        # An output without a measured tail has a band with the standard deviation of all its values.
        unmeasured = np.isnan(tail).all(axis=0)
        sizes = np.sqrt(np.nanmean(np.where(unmeasured, 0.0, tail) ** 2, axis=0))
        np.testing.assert_allclose(path.std[0], np.where(unmeasured, np.nanstd(train.y, axis=0), sizes))
