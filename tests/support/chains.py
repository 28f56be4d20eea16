"""Layers and chains with numbers by hand, and trajectories of a chain by a plain loop."""

from itertools import pairwise

import equinox as eqx
import jax
import numpy as np

from revarb.gp.layer import Layer, Linear, inverse_softplus
from revarb.gp.posterior import compute_posterior, exact_posterior, predict_certain
from revarb.simulation.chain import Chain, StartState
from support.random_models import add_linear


def make_layer(zeta, w, variance, sigma2, linear=None):
    """A layer with these positive values."""
    raw = [np.asarray(inverse_softplus(value)) for value in (w, variance, sigma2)]
    return Layer(zeta, *raw, linear)


compiled_posterior = jax.jit(compute_posterior, static_argnames="jitter")


def exact_layer(layer, y):
    """The exact GP, as arrays of NumPy."""
    return jax.tree.map(np.asarray, jax.jit(exact_posterior)(layer, y))


def smooth_chain(chain, noise):
    """The chain with another noise, so that a test can make steps nearly linear or nearly certain."""

    def quieter(layer):
        return eqx.tree_at(lambda each: each.sigma2, layer, np.array(noise))

    output = None if chain.output is None else quieter(chain.output)
    return Chain(tuple(quieter(layer) for layer in chain.hidden), output, chain.lags)


def change_linear(chain, make):
    """The chain with the linear parts that `make` returns for the shape of their coefficients."""
    layers = [
        add_linear(layer, Linear(*make((layer.zeta.shape[1], layer.outputs))))
        for layer in (*chain.hidden, chain.output)
    ]
    return Chain(tuple(layers[:-1]), layers[-1], chain.lags)


def monte_carlo(chain, start, u_bar, count, rng):
    """Trajectories by a plain loop: each layer draws f + noise at its sampled regressors."""
    L = chain.lags
    joint = rng.multivariate_normal(start.mean, start.cov, size=count)
    sizes = np.cumsum([0, *(L * dim for dim in chain.latent_dims)])
    windows = [joint[:, a:b] for a, b in pairwise(sizes)]
    outputs = []
    for now in u_bar:
        side = np.broadcast_to(now, (count, len(now)))
        for h, layer in enumerate(chain.hidden):
            mean, variance = predict_certain(layer, np.hstack([windows[h], side]))
            drawn = mean + np.sqrt(variance + layer.sigma2)[:, None] * rng.normal(size=mean.shape)
            dim = chain.latent_dims[h]
            windows[h] = np.hstack([drawn, windows[h][:, :-dim]])
            side = windows[h]
        if chain.output is not None:
            mean, variance = predict_certain(chain.output, side)
            drawn = mean + np.sqrt(variance + chain.output.sigma2)[:, None] * rng.normal(size=mean.shape)
        outputs.append(drawn)
    return np.stack(outputs, axis=1)


def correlated_start(chain, rng, scale):
    """A random Gaussian state of the chain, with correlations between all lags."""
    size = chain.lags * sum(chain.latent_dims)
    root = scale * rng.normal(size=(size, size)) / np.sqrt(size)
    return StartState(0.3 * rng.normal(size=size), root @ root.T + 1e-4 * np.eye(size), np.zeros((2, 1)))
