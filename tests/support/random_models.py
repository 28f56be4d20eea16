"""Random parameters and rows of a model of any size."""

import equinox as eqx
import numpy as np

from revarb.gp.layer import Layer, Linear
from revarb.variational.bound import Rows
from revarb.variational.noise import StudentNoise
from revarb.variational.parameters import Parameters
from revarb.variational.states import FreeStates, InitialPrior

L, JITTER = 2, 1e-6


def random_parameters(rng, lengths, H=2, Dx=1, Du=1, M=4, far=0.0, linear=None, student=None):
    """Random parameters for records of these lengths; `far` moves everything away from the origin.

    `linear` is the number of outputs of a model with linear parts, `student` of one with Student-t noise.
    """
    sizes = [L * Dx + L * Du, *[2 * L * Dx] * (H - 1), L * Dx]
    layers = tuple(
        Layer(far + rng.normal(size=(M, D)), rng.normal(size=D), np.array(0.4), np.array(-1.0)) for D in sizes
    )
    S = sum(lengths)
    mu = tuple(far + rng.normal(size=(S, Dx)) for _ in range(H))
    raw_lam = tuple(rng.normal(size=(S, Dx)) - 1.0 for _ in range(H))
    priors = tuple(InitialPrior(0.3 * rng.normal(size=(L, Dx)), rng.normal(size=(L, Dx))) for _ in range(H))
    if linear is not None:
        layers = tuple(
            add_linear(layer, Linear(0.3 * rng.normal(size=(layer.zeta.shape[1], dim)), 0.2 * rng.normal(size=dim)))
            for layer, dim in zip(layers, [*[Dx] * H, linear], strict=True)
        )
    rows = S - L * len(lengths)
    noise = None if student is None else StudentNoise(0.5 + 0.4 * rng.normal(size=(rows, student)), np.array(0.7))
    return Parameters(layers, FreeStates(mu, raw_lam), priors, noise)


def add_linear(layer, linear):
    """The layer, or its posterior, with another linear part."""
    return eqx.tree_at(lambda each: each.linear, layer, linear, is_leaf=lambda leaf: leaf is None)


def random_rows(rng, lengths, Du=1, Dy=2, far=0.0):
    """Random inputs and outputs for records of these lengths."""
    R = sum(lengths) - L * len(lengths)
    return Rows(far + rng.normal(size=(R, L * Du)), rng.normal(size=(R, Dy)))


def separated(rows, layout):
    """Rows and layout with a group for every output, as Student-t noise needs them."""
    columns = range(rows.y.shape[1])
    measured, groups = np.ones(rows.y.shape, dtype=bool), tuple((column,) for column in columns)
    return rows._replace(measured=measured), layout._replace(groups=groups)
