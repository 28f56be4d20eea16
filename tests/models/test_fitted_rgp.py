"""A trained model: prediction, networks, final states."""

from dataclasses import replace

import numpy as np
import pytest

import revarb
from revarb.errors import InputError
from support import small
from support.recognised import QUICK_NETWORKS


@pytest.fixture(scope="module")
def model():
    return small.spec(hidden=1).fit(small.record(samples=80))


@pytest.mark.slow
def test_one_step_ahead_is_better_than_many(model):
    record = small.record(8, samples=80)
    one, many = (revarb.scores(model.predict(record, horizon), record.y, skip=10) for horizon in (1, 20))
    assert one.rmse < many.rmse and one.nlpd < many.nlpd
    path = model.predict(record, 2)
    assert path.start == "2 steps ahead" and path.method == "moments" and len(path) == len(record)
    np.testing.assert_allclose(model.predict(record, horizon=1000).mean, model.simulate(record.u).mean)  # a cold run


def test_predict_refuses_no_horizon(model):
    with pytest.raises(InputError, match="horizon must be a whole number from 1 to"):
        model.predict(small.record(), 0)
    assert replace(model, calibration=None).chain is model.trained.chain


def test_final_states_are_those_of_the_last_samples():
    """The final state is q(x)'s: newest first, layer after layer, with the record's last inputs."""
    model = small.spec().fit(small.record())
    state = model.final_states[0]
    mu = [np.asarray(layer)[:, 0] for layer in model.trained.parameters.states.mu]
    np.testing.assert_array_equal(state.mean, [mu[0][-1], mu[0][-2], mu[1][-1], mu[1][-2]])
    lam = [np.log1p(np.exp(np.asarray(raw)[:, 0])) for raw in model.trained.parameters.states.raw_lam]
    np.testing.assert_allclose(state.cov, np.diag([lam[0][-1], lam[0][-2], lam[1][-1], lam[1][-2]]), rtol=1e-12)
    np.testing.assert_array_equal(state.past_u, model.scaling.inputs(small.record().u)[-2:])


@pytest.mark.slow
def test_a_network_run_is_its_own_simulation():
    model = small.spec(recognition=QUICK_NETWORKS).fit([small.record(0), small.record(1, samples=40)], seed=2)
    u = small.record(5).u
    path = model.simulate(u, "network")
    assert path.std is None and path.method == "network" and len(path) == len(u)
    paths = model.recognise(u)
    assert [each.shape for each in paths] == [(60, 1), (60, 1)]
    # The output layer at the window of the last layer's path, once the cold start has left the window.
    window = np.array([[paths[-1][30, 0], paths[-1][29, 0]]])
    z = np.asarray(model.trained.chain.output.mean(window))
    np.testing.assert_allclose(path.mean[30], model.scaling.raw_outputs(z)[0], rtol=1e-9)
    warm = model.simulate(u, "network", start=model.final_states[0])
    assert warm.skip == 0 and not np.array_equal(warm.mean[3], path.mean[3])


def test_a_model_without_networks_says_so():
    model = small.spec().fit(small.record())
    for call in (lambda: model.simulate(small.record().u, "network"), lambda: model.recognise(small.record().u)):
        with pytest.raises(InputError, match=r"has no networks; fit RGP\(recognition="):
            call()
