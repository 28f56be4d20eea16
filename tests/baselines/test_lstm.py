"""LSTM: it learns, it stops, and what chooses for it is inside the training part."""

from contextlib import contextmanager

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from revarb.baselines import lstm
from revarb.baselines.lstm import LSTM
from revarb.baselines.lstm_network import LSTMNetwork
from revarb.baselines.mean import Mean
from revarb.baselines.mlp_narx import MLPNARX
from revarb.data.preprocessor import Preprocessor
from revarb.data.windows import Order
from revarb.errors import InputError
from revarb.evaluation.scoring import scores
from support import small

MLP = MLPNARX(lags=2, input_lags=2, units=(2, 6), iterations=150)
MEMORY = LSTM(layers=(1,), units=12, subsequence=30, updates=500, patience=500, learning_rate=2e-2)


def rmse(spec, train, test):
    return scores(spec.fit(train, seed=0).simulate(test.u), test.y, skip=5).rmse


@pytest.mark.parametrize("spec", [MLP, MEMORY], ids=["MLP-NARX", "LSTM"])
def test_a_toy_system_is_learnt(spec):
    """Half of the mean's error at the very least; twice as good as that in most runs."""
    train, test = small.record(0, samples=200), small.record(1, samples=200)
    assert rmse(spec, train, test) < 0.5 * rmse(Mean(), train, test)


def test_the_memory_runs_as_a_plain_loop(rng):
    network = LSTMNetwork.random(2, 3, 5, 2, jax.random.key(1))
    u = rng.normal(size=(7, 2))
    states = [(jnp.zeros(5), jnp.zeros(5))] * 3
    rows = []
    for now in u:
        for layer, cell in enumerate(network.cells):
            states[layer] = cell(now, states[layer])
            now = states[layer][0]
        rows.append(network.readout(now))
    np.testing.assert_allclose(network(u), np.array(rows), atol=1e-12)
    assert all(isinstance(cell, eqx.nn.LSTMCell) for cell in network.cells)


def test_cuts_stay_inside_the_heads_and_never_cross_a_seam():
    records = [small.record(0, samples=80), small.record(1, samples=60), small.record(2, samples=9)]
    prep = Preprocessor.from_records(records, Order(0, 1, 1))
    cuts = lstm._cuts(prep, records, [60, 45, 9], 30)
    assert cuts.length == 30  # the short record has no cuts of its own, and does not shorten the others
    expected = [*range(0, 31), *range(80, 80 + 16)]
    np.testing.assert_array_equal(cuts.starts, expected)


class Rounds:
    """Counts what the trainings are asked for, and on which cuts."""

    def __init__(self, monkeypatch):
        self.asked = []
        original = lstm.training

        def spy(network, cuts, *rest):
            mine = len(self.asked)
            self.asked.append([int(cuts.starts.max()) + cuts.length, 0])
            for each in original(network, cuts, *rest):
                self.asked[mine][1] += 1
                yield each

        monkeypatch.setattr(lstm, "training", spy)


def test_the_search_stops_after_its_patience_and_the_last_training_takes_as_long_as_was_best(monkeypatch):
    rounds = Rounds(monkeypatch)
    errors = iter([5.0, 3.0, 4.0, 4.0, 4.0, 9.0, 9.0])
    monkeypatch.setattr(lstm, "error_size", lambda _: next(errors))
    model = LSTM(layers=(1,), units=4, subsequence=20, updates=500, patience=75).fit(small.record())
    # Best after round 2, three more without a better one; on the first 45 of 60 samples, then on all.
    assert rounds.asked == [[45, 5], [60, 2]]
    assert model.status.value == "converged"


def test_updates_are_a_limit(monkeypatch):
    rounds = Rounds(monkeypatch)
    model = LSTM(layers=(1,), units=4, subsequence=20, updates=30, patience=1000).fit(small.record())
    assert rounds.asked[0] == [45, 2] and model.status.value == "iteration limit"


def test_a_training_that_leaves_the_numbers_ends(monkeypatch):
    errors = iter([1.0, np.inf])
    monkeypatch.setattr(lstm, "error_size", lambda _: next(errors))
    model = LSTM(layers=(1,), units=4, subsequence=20, updates=500).fit(small.record())
    assert model.status.value == "not finite"


@pytest.mark.parametrize("after", [0, 3])
def test_ctrl_c_keeps_the_best_network_of_the_search(monkeypatch, after):
    """In the search (three rounds of it) or in the last training."""
    presses = iter([False] * after + [True] * 9)

    @contextmanager
    def pressed():
        yield [2] if next(presses) else []

    monkeypatch.setattr(lstm, "held_interrupts", pressed)
    model = LSTM(layers=(1,), units=4, subsequence=20, updates=75, patience=1000).fit(small.record())
    assert model.status.value == "interrupted" and np.isfinite(model.simulate(small.record(1).u).mean).all()


def test_the_depth_with_the_smallest_error_on_the_tail_is_taken(monkeypatch):
    tried = []
    original = lstm._train

    def spy(spec, prep, records, cuts, depth, key, report):
        assert cuts.starts.max() + cuts.length == 45  # of 60 samples the last 15 are not trained on
        trial = original(spec, prep, records, cuts, depth, key, report)
        tried.append(trial)
        return trial

    monkeypatch.setattr(lstm, "_train", spy)
    model = LSTM(layers=(1, 2), units=4, subsequence=20, updates=50).fit(small.record())
    assert [trial.depth for trial in tried] == [1, 2]
    best = min(tried, key=lambda trial: trial.error)
    assert len(model.network.cells) == best.depth
    # Trained once more, on everything: other weights, the same band.
    assert np.abs(model.network.readout.weight - best.network.readout.weight).max() > 1e-6
    np.testing.assert_allclose(np.sqrt(np.mean(model.residual_std**2)), best.error)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LSTM(layers=(4,)), "layers must be a whole number from 1 to 3, received 4"),
        (lambda: LSTM(layers=()), "layers must be a tuple of depths"),
        (lambda: LSTM(learning_rate=0.0), "learning_rate must be a finite number above 0"),
        (lambda: LSTM(batch=0), "batch must be a whole number of at least 1"),
        (lambda: MLPNARX(units=()), "units must be a tuple of numbers to choose from"),
        (lambda: MLPNARX(units=(0,)), "units must be a whole number of at least 1"),
        (lambda: MLPNARX(weight_decay=-1.0), "weight_decay must be a finite number of at least 0"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make()
