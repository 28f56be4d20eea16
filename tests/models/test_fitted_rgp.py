"""A trained RGP: its final states and its networks."""

import numpy as np
import pytest

from support import small
from support.recognised import QUICK_NETWORKS


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
