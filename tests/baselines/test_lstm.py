"""LSTM: training, early stopping, and selection on the training part alone."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from revarb.baselines import lstm
from revarb.baselines.lstm import LSTM, LSTMNetwork
from revarb.baselines.mean import Mean
from revarb.baselines.training_rows import DelayedRecords
from revarb.errors import RevarbError
from revarb.models.recipe import Status
from revarb.runtime.numerics import with_numerics
from support import small


def test_a_toy_system_is_learnt():
    """At most half of the error of the training mean; most runs reach a quarter."""
    spec = LSTM(layers=(1,), units=12, subsequence=30, updates=500, patience=500, learning_rate=2e-2)
    assert small.rmse(spec) < 0.5 * small.rmse(Mean())


def test_the_recurrence_equals_a_plain_loop(rng):
    network = LSTMNetwork.draw(2, 3, 5, 2, jax.random.key(1))
    u = rng.normal(size=(7, 2))
    states, rows = [(jnp.zeros(5), jnp.zeros(5))] * 3, []
    for now in u:
        for layer, cell in enumerate(network.cells):
            states[layer] = cell(now, states[layer])
            now = states[layer][0]
        rows.append(network.readout(now))
    np.testing.assert_allclose(network(u), np.array(rows), atol=1e-12)
    assert all(isinstance(cell, eqx.nn.LSTMCell) for cell in network.cells)


def test_cuts_stay_inside_the_heads_and_never_cross_a_seam():
    records = [small.record(0, samples=80), small.record(1, samples=60), small.record(2, samples=9)]
    cuts = lstm._cut_records(DelayedRecords.from_records(records, 1), [60, 45, 9], 30)
    assert cuts.length == 30  # the short record has no cuts of its own, and does not shorten the others
    np.testing.assert_array_equal(cuts.starts, [*range(0, 31), *range(80, 80 + 16)])


SHORT = LSTM(layers=(1,), units=4, subsequence=20, updates=500, patience=75)


class Search:
    """The training of one depth on the first 45 of 60 samples, and the errors that it reported."""

    def __init__(self, spec, depth=1):
        self.data, self.key, self.errors = DelayedRecords.from_records([small.record()], 1), jax.random.key(0), []
        cuts, note = lstm._cut_records(self.data, [45], spec.subsequence), self.errors.append
        self.trial = lstm._train(spec, self.data, cuts, depth, self.key, lambda _, error: note(error))


@with_numerics
def test_the_search_stops_after_its_patience_and_keeps_the_best():
    search = Search(replace(SHORT, learning_rate=0.3))
    trial, errors = search.trial, search.errors
    assert trial.status is Status.CONVERGED
    assert trial.error == min(errors) == errors[trial.rounds - 1]
    assert len(errors) == trial.rounds + 3  # 75 updates are three rounds


@with_numerics
def test_the_last_training_takes_as_long_as_was_best():
    search = Search(SHORT)
    network, status = lstm._train_on_everything(SHORT, search.data, search.trial._replace(rounds=2), search.key)
    rounds = lstm._train_rounds(SHORT, lstm._cut_records(search.data, [60], 20), 1, search.key)
    _, expected = next(rounds), next(rounds)
    for ours, theirs in zip(jax.tree.leaves(network), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert status is search.trial.status


@with_numerics
def test_training_ends_at_its_updates_and_when_it_diverges():
    search = Search(replace(SHORT, updates=30, patience=1000))
    assert len(search.errors) == 2 and search.trial.status is Status.ITERATION_LIMIT
    search = Search(replace(SHORT, learning_rate=1e200))
    assert search.trial.status is Status.NOT_FINITE and not np.isfinite(search.errors[-1])
    with pytest.raises(RevarbError, match="the training of the LSTM diverged; use a smaller learning_rate"):
        replace(SHORT, learning_rate=1e200).fit(small.record())


@pytest.mark.parametrize("call", [0, 3])
def test_ctrl_c_keeps_the_best_network_of_the_search(press_ctrl_c, call):
    """In the search (three rounds of it) or in the last training."""
    press_ctrl_c(lstm, call)
    model = replace(SHORT, updates=75, patience=1000).fit(small.record())
    assert model.status.value == "interrupted" and np.isfinite(model.simulate(small.record(1).u).mean).all()


@with_numerics
def test_the_depth_with_the_smallest_error_on_the_tail_is_taken():
    spec = replace(SHORT, layers=(1, 2), updates=50)
    best = min((Search(spec, depth).trial for depth in (1, 2)), key=lambda trial: trial.error)
    model = spec.fit([small.record()])
    assert len(model.network.cells) == best.depth
    # Trained once more, on everything: other weights, the same band.
    assert np.abs(model.network.readout.weight - best.network.readout.weight).max() > 1e-6
    np.testing.assert_allclose(np.sqrt(np.mean(model.residual_std**2)), best.error)
