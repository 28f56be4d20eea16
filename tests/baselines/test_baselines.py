"""What every rival has in common with RGP: records in, a Trajectory in raw units out."""

import numpy as np
import pytest

from revarb.baselines.training_mean import Mean
from revarb.data.series import Series
from revarb.data.trajectory import Trajectory
from revarb.errors import InputError
from support import small
from support.processes import run_python
from support.small_rivals import QUICK_MODELS

every_model = pytest.mark.parametrize("name", QUICK_MODELS)
quick_but_rgp = pytest.mark.parametrize(  # its fits are tested in tests/training
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "RGP" else ()) for name in QUICK_MODELS]
)


@quick_but_rgp
def test_several_records_inputs_and_outputs(name):
    records = [small.record(seed, samples=length, inputs=2, outputs=2) for seed, length in ((0, 50), (1, 40))]
    model = QUICK_MODELS[name].fit(records)
    u = small.record(5, inputs=2).u
    for method in model.methods:
        path = model.simulate(u, method)
        assert isinstance(path, Trajectory) and path.mean.shape == (60, 2)
        assert np.isfinite(path.mean).all() and path.method == method
        assert path.std is None if method == "mean" else (path.std > 0.0).all()


@pytest.mark.slow
@quick_but_rgp
def test_many_records_have_whole_ones_held_out(name):
    model = QUICK_MODELS[name].fit([small.record(seed, samples=25) for seed in range(5)])
    assert np.isfinite(model.simulate(small.record(9).u).mean).all()


@pytest.mark.slow
@quick_but_rgp
def test_a_system_without_inputs(name):
    y = np.sin(0.4 * np.arange(80.0)) + 0.01 * np.random.default_rng(0).normal(size=80)
    model = QUICK_MODELS[name].fit(Series(None, y))
    assert model.simulate(steps=12).mean.shape == (12, 1)
    with pytest.raises(InputError, match="steps"):
        model.simulate()


@every_model
def test_same_seed_same_numbers(name):
    u = small.record(5).u
    first, second = (QUICK_MODELS[name].fit(small.record(), seed=3).simulate(u).mean for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", ["MLP-NARX", "LSTM", "GP-NARX, sparse", "RGP"])
def test_another_seed_is_another_start(name):
    u = small.record(5).u
    first, second = (QUICK_MODELS[name].fit(small.record(), seed=seed).simulate(u).mean for seed in (0, 1))
    assert np.abs(first - second).max() > 1e-9


@every_model
def test_raw_units_go_in_and_come_out(name):
    """Other units of u and y: the same trajectory in those units."""
    record, test = small.record(), small.record(5)
    scaled = Series(1000.0 * record.u - 7.0, 0.01 * record.y + 50.0)
    plain = QUICK_MODELS[name].fit(record).simulate(test.u)
    moved = QUICK_MODELS[name].fit(scaled).simulate(1000.0 * test.u - 7.0)
    np.testing.assert_allclose(moved.mean, 0.01 * plain.mean + 50.0, atol=2e-4)
    np.testing.assert_allclose(moved.std, 0.01 * plain.std, rtol=0.02)


@every_model
def test_wrong_arguments_are_refused(name):
    model = QUICK_MODELS[name].fit(small.record())
    with pytest.raises(InputError, match=r"u has 2 column\(s\), but the model was trained with 1"):
        model.simulate(np.zeros((20, 2)))
    with pytest.raises(InputError, match="u has 1 value"):
        model.simulate([0.0, 0.0, 0.0, np.nan, 0.0])
    with pytest.raises(InputError, match="seed must be a whole number"):
        QUICK_MODELS[name].fit(small.record(), seed=-1)
    with pytest.raises(InputError, match="output column 'y' is constant"):
        QUICK_MODELS[name].fit(Series(small.record().u, np.ones(60)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "ARX",
        "MLP-NARX",
        "GP-NARX",
        *(pytest.param(f"GP-NARX, {kind}", marks=pytest.mark.slow) for kind in ("sparse", "per output")),
    ],
)
def test_regressions_do_with_gaps(name):
    """Two outputs, missing at different rows: the model is a little different, and finite."""
    record, u = small.record(samples=80, outputs=2), small.record(5).u
    fits = [QUICK_MODELS[name].fit(small.with_gaps(record, *gaps)) for gaps in ([(slice(20, 23), 0), (60, 1)], [])]
    with_gaps, complete = (model.simulate(u).mean for model in fits)
    assert np.isfinite(with_gaps).all() and 0.0 < np.abs(with_gaps - complete).max() < 1.0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("GP-NARX", "GP-NARX regresses on measured past outputs, and 1 of 58 training rows have all of them measured"),
        ("MLP-NARX", "MLP-NARX regresses on measured past outputs, and 1 of 58 training rows have all of them"),
        ("ARX", "no row of the records has all its past outputs measured; use fewer lags, or fill the gaps"),
        ("LSTM", "^LSTM needs every output value, and 20 of 60 are missing; fill them, or use RGP"),
    ],
)
def test_too_many_gaps_are_refused(name, message):
    every_third = small.with_gaps(small.record(), slice(0, 57, 3), 58)
    with pytest.raises(InputError, match=message):
        QUICK_MODELS[name].fit(every_third)


def test_a_fold_without_rows_is_refused():
    gaps = small.with_gaps(small.record(), slice(20, None, 2))
    with pytest.raises(InputError, match="the gaps leave no training rows beside a held-out piece of the records"):
        QUICK_MODELS["MLP-NARX"].fit(small.with_gaps(gaps, slice(0, 3), slice(14, 20)))


def test_the_mean_of_what_was_measured():
    train = small.with_gaps(small.record(outputs=2), (slice(3, 9), 0), (slice(50, 55), 0), (slice(45, None), 1))
    path = Mean().fit(train).simulate(np.zeros(4))
    np.testing.assert_allclose(path.mean[0], np.nanmean(train.y, axis=0))
    tail = train.y[45:, 0] - np.nanmean(train.y[:45, 0])
    # The second output has no measured tail: its band has the standard deviation of all its values.
    np.testing.assert_allclose(path.std[0], [np.sqrt(np.nanmean(tail**2)), np.nanstd(train.y[:, 1])])


PROGRAM = """
import jax.numpy as jnp, numpy as np
from support import small, small_rivals
for name, spec in small_rivals.QUICK_MODELS.items():
    path = spec.fit(small.record()).simulate(small.record(5).u)
    assert type(path.mean) is np.ndarray and path.mean.dtype == np.float64, name
    assert jnp.zeros(1).dtype == jnp.float32, name
"""


@pytest.mark.slow
def test_the_callers_jax_keeps_its_precision():
    """In an interpreter of its own: float32 stays the caller's default, and float64 comes out."""
    done = run_python("-c", PROGRAM)
    assert done.returncode == 0, done.stderr


def test_the_mean_predicts_the_training_mean():
    train = small.record()
    path = Mean().fit(train).simulate(np.zeros(7))
    np.testing.assert_allclose(path.mean, np.full((7, 1), train.y.mean()))
    tail = train.y[45:] - train.y[:45].mean()
    np.testing.assert_allclose(path.std, np.full((7, 1), np.sqrt(np.mean(tail**2))))
