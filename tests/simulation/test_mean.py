"""The mean-only run against a plain loop."""

import numpy as np

from revarb.gp.posterior import predict_certain
from support import small


def typical_window(mu, lags, lengths):
    """The mean of the last `lags` states of a layer over all rows, oldest first."""
    windows, begin = [], 0
    for length in lengths:
        windows += [mu[begin + row - lags + 1 : begin + row + 1] for row in range(lags, length)]
        begin += length
    return list(np.mean(windows, axis=0))


def loop_mean(model, u):
    """The mean-only free run by a plain loop over the paper's windows, from the mean of the states in training."""
    L, L_u, delay = model.order.lags, model.order.input_lags, model.order.input_delay
    z = model.scaling.inputs(u)
    padded = np.concatenate([np.zeros((model.order.reach, z.shape[1])), z])
    chain = model.trained.chain

    x, rows = [typical_window(np.asarray(mu), L, model.lengths) for mu in model.trained.parameters.states.mu], []
    for i in range(len(u)):
        now = i + model.order.reach
        below = [padded[now - delay - age] for age in range(L_u)]
        for h, layer in enumerate(chain.hidden):
            x_hat = np.concatenate([*x[h][::-1][:L], *below])
            x[h] = [*x[h], np.asarray(predict_certain(layer, x_hat[None])[0][0])]
            below = x[h][::-1][:L]
        rows.append(np.asarray(predict_certain(chain.output, np.concatenate(below)[None])[0][0]))
    return model.scaling.raw_outputs(np.array(rows))


def test_mean_run_equals_a_plain_loop(model):
    u = small.record(3).u
    np.testing.assert_allclose(model.simulate(u, method="mean").mean, loop_mean(model, u), atol=1e-10)
