"""MLP-NARX: training, and selection on the training part alone."""

import jax
import numpy as np
import pytest

from revarb.analysis.scores import scores
from revarb.baselines import mlp_narx
from revarb.baselines.mlp_narx import MLPNARX, Perceptron
from revarb.data.series import Series
from revarb.fitting.arx import NarxRows, build_narx_rows, simulate_records
from revarb.fitting.quarters import QUARTERS, compute_quarter_errors, select_rows_outside
from revarb.runtime.numerics import with_numerics
from revarb.simulation.chain import Chain
from support import small


def test_the_network_has_the_documented_formula(rng):
    network = Perceptron.draw(3, 4, 2, jax.random.key(0))
    x = rng.normal(size=(5, 3))
    hidden = np.tanh(x @ network.hidden.weight.T + network.hidden.bias)
    np.testing.assert_allclose(network.mean(x), hidden @ network.readout.weight.T + network.readout.bias, atol=1e-12)
    assert network.outputs == 2


def test_units_are_chosen_by_the_simulation_of_held_out_pieces():
    """A network with one hidden unit cannot represent the nonlinearity of this system."""
    u = np.random.default_rng(0).uniform(-2, 2, size=300)
    y = np.concatenate([[0.0], np.sin(3.0 * u[:-1])])
    model = MLPNARX(lags=1, input_lags=1, units=(1, 12), weight_decay=1e-5).fit(Series(u, y))
    assert model.model.hidden.weight.shape[0] == 12
    assert scores(model.simulate(u), y).nrmse < 0.1


@with_numerics
@pytest.mark.parametrize(
    ("gaps", "keep"), [([], np.arange(78)), ([slice(30, 33), 70], np.r_[0:28, 33:68, 71:78])], ids=["complete", "gaps"]
)
def test_every_fold_is_trained_without_its_piece_and_the_last_network_on_everything(gaps, keep):
    """Cross-validation written out, over the rows that no gap touches: the same band and the same network."""
    spec = MLPNARX(lags=2, input_lags=2, units=(3,), iterations=5)
    records = [small.with_gaps(small.record(samples=80), *gaps)]
    model, key = spec.fit(records), jax.random.key(0)
    prep = model.preprocessor
    every = build_narx_rows(prep, records)
    rows, errors = NarxRows(every.x_hat[keep], every.y[keep]), []
    assert np.isfinite(rows.x_hat).all() and np.isfinite(rows.y).all()
    for number in range(QUARTERS):
        outside = select_rows_outside(prep, [80], number)[keep].astype(float)
        assert 0 < outside.sum() < len(outside)
        network, _ = mlp_narx._train(spec, rows, outside, 3, key)
        runs = simulate_records(prep, Chain((network,), None, 2), records)
        errors.append(compute_quarter_errors(prep, records, runs, number))
    joined = np.concatenate(errors)
    assert np.isnan(joined).sum() == np.isnan(records[0].y).sum()  # errors of missing outputs do not count
    np.testing.assert_allclose(model.residual_std, [np.sqrt(np.nanmean(joined**2))])
    final, _ = mlp_narx._train(spec, rows, np.ones(len(keep)), 3, key)
    np.testing.assert_array_equal(model.model.hidden.weight, final.hidden.weight)
