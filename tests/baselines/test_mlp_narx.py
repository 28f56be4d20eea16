"""MLP-NARX: it learns, and what chooses for it is inside the training part."""

import jax
import numpy as np

from revarb.baselines import mlp_narx
from revarb.baselines.held_out import PIECES, rows_outside
from revarb.baselines.mlp_narx import MLPNARX, Perceptron
from revarb.data.series import Series
from revarb.evaluation.scoring import scores
from support import small

MLP = MLPNARX(lags=2, input_lags=2, units=(2, 6), iterations=150)


def rmse(spec, train, test):
    return scores(spec.fit(train, seed=0).simulate(test.u), test.y, skip=5).rmse


def test_the_network_is_what_it_says(rng):
    network = Perceptron.random(3, 4, 2, jax.random.key(0))
    x = rng.normal(size=(5, 3))
    hidden = np.tanh(x @ np.asarray(network.hidden.weight).T + np.asarray(network.hidden.bias))
    expected = hidden @ np.asarray(network.readout.weight).T + np.asarray(network.readout.bias)
    np.testing.assert_allclose(network.mean(x), expected, atol=1e-12)
    assert network.outputs == 2


def test_units_are_chosen_by_the_simulation_of_pieces_that_were_not_seen():
    """A net of one unit cannot bend twice; the system does."""
    rng = np.random.default_rng(0)
    u = rng.uniform(-2, 2, size=300)
    y = np.concatenate([[0.0], np.sin(3.0 * u[:-1])])
    model = MLPNARX(lags=1, input_lags=1, units=(1, 12), weight_decay=1e-5).fit(Series(u, y))
    assert model.model.hidden.weight.shape[0] == 12
    assert scores(model.simulate(u), y).nrmse < 0.1


def test_every_fold_is_trained_without_its_piece_and_the_last_network_on_everything(monkeypatch):
    used = []
    original = mlp_narx._train

    def spy(spec, rows, weights, units, key):
        used.append(weights.astype(bool))
        return original(spec, rows, weights, units, key)

    monkeypatch.setattr(mlp_narx, "_train", spy)
    record = small.record(samples=80)
    model = MLPNARX(lags=2, input_lags=2, units=(3,), iterations=5).fit(record)
    *folds, final = used
    assert len(folds) == PIECES and final.all() and len(final) == 78
    for number, fold in enumerate(folds):
        np.testing.assert_array_equal(fold, rows_outside(model.preprocessor, [80], number))
