"""MLP-NARX: training, and selection on the training part alone."""

import jax
import numpy as np
import pytest

from revarb.baselines import mlp_narx
from revarb.baselines.mlp_narx import MLPNARX, Perceptron
from revarb.baselines.training_mean import Mean
from revarb.data.series import Series
from revarb.errors import InputError
from revarb.evaluation.scoring import scores
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import Chain
from revarb.training.held_out import PIECES, compute_held_out_errors, estimate_residual_std, select_rows_outside
from revarb.training.narx_rows import build_narx_rows, simulate_records
from support import small

MLP = MLPNARX(lags=2, input_lags=2, units=(2, 6), iterations=150)


def test_a_toy_system_is_learnt():
    assert small.rmse(MLP) < 0.5 * small.rmse(Mean())


def test_the_network_has_the_documented_formula(rng):
    network = Perceptron.draw(3, 4, 2, jax.random.key(0))
    x = rng.normal(size=(5, 3))
    hidden = np.tanh(x @ np.asarray(network.hidden.weight).T + np.asarray(network.hidden.bias))
    expected = hidden @ np.asarray(network.readout.weight).T + np.asarray(network.readout.bias)
    np.testing.assert_allclose(network.mean(x), expected, atol=1e-12)
    assert network.outputs == 2


def test_units_are_chosen_by_the_simulation_of_held_out_pieces():
    """A network with one hidden unit cannot represent the nonlinearity of this system."""
    rng = np.random.default_rng(0)
    u = rng.uniform(-2, 2, size=300)
    y = np.concatenate([[0.0], np.sin(3.0 * u[:-1])])
    model = MLPNARX(lags=1, input_lags=1, units=(1, 12), weight_decay=1e-5).fit(Series(u, y))
    assert model.model.hidden.weight.shape[0] == 12
    assert scores(model.simulate(u), y).nrmse < 0.1


@with_numerics
def test_every_fold_is_trained_without_its_piece_and_the_last_network_on_everything():
    """Cross-validation written out gives the same band, and training on all rows the same network."""
    spec, records, key = MLPNARX(lags=2, input_lags=2, units=(3,), iterations=5), [small.record(samples=80)], 0
    model, key = spec.fit(records, seed=key), jax.random.key(key)
    prep, rows = model.preprocessor, build_narx_rows(model.preprocessor, records)
    errors = []
    for number in range(PIECES):
        outside = select_rows_outside(prep, [80], number).astype(float)
        assert 0 < outside.sum() < len(outside) == 78
        network, _ = mlp_narx._train(spec, rows, outside, 3, key)
        runs = simulate_records(prep, Chain((network,), None, 2), records)
        errors.append(compute_held_out_errors(prep, records, runs, number))
    np.testing.assert_allclose(model.residual_std, estimate_residual_std(np.concatenate(errors)))
    final, _ = mlp_narx._train(spec, rows, np.ones(78), 3, key)
    np.testing.assert_array_equal(model.model.hidden.weight, final.hidden.weight)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MLPNARX(units=()), "units must be a tuple of numbers to choose from"),
        (lambda: MLPNARX(units=(0,)), "units must be a whole number of at least 1"),
        (lambda: MLPNARX(weight_decay=-1.0), "weight_decay must be a finite number of at least 0"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make()
