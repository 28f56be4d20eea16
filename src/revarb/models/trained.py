"""The arrays of a trained recurrent GP: what its model file holds, and the validation of what was read."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from revarb.data.windows import regressor_sizes
from revarb.errors import InputError
from revarb.gp.layer import Layer, Linear
from revarb.gp.posterior import Posterior
from revarb.models.model_file import blank_array
from revarb.models.rgp import RGP
from revarb.simulation.chain import Chain, StartState
from revarb.variational.noise import MIN_DEGREES, StudentNoise
from revarb.variational.parameters import Parameters
from revarb.variational.states import FreeStates, InitialPrior, Network, build_networks


class Trained(NamedTuple):
    """The arrays of a trained model, all z-scored: what a model file holds."""

    parameters: Parameters  # its states are written out, also those of a recognition model
    chain: Chain[Posterior]
    final_states: tuple[StartState, ...]
    networks: tuple[Network, ...] | None = None  # of a recognition model


def make_template(
    spec: RGP, lengths: tuple[int, ...], records: int, inducing: int, inputs: int, outputs: int, outputs_apart: bool
) -> Trained:
    """The tree of a model's arrays with these sizes; it takes no memory."""
    order, dims, blank = spec.order_for(inputs), spec.latent_dims, blank_array
    sizes = regressor_sizes(order, dims, inputs)
    linear = [
        Linear(blank(size, dim), blank(dim)) if spec.linear else None
        for size, dim in zip(sizes, (*dims, outputs), strict=True)
    ]
    layers = tuple(
        Layer(blank(inducing, size), blank(size), blank(), blank(), part)
        for size, part in zip(sizes, linear, strict=True)
    )
    states = tuple(blank(sum(lengths), dim) for dim in dims)
    priors = tuple(InitialPrior(blank(spec.lags, dim), blank(spec.lags, dim)) for dim in dims)
    square: tuple[int, ...] = (inducing, inducing)
    squares = [square] * len(dims) + [(outputs, *square) if outputs_apart else square]
    known = tuple(
        Posterior(blank(inducing, size), blank(size), blank(), blank(), blank(inducing, dim), blank(*shape), part)
        for size, dim, shape, part in zip(sizes, (*dims, outputs), squares, linear, strict=True)
    )
    joint = spec.lags * sum(dims)
    final = StartState(blank(joint), blank(joint, joint), blank(order.reach, inputs))
    rows = sum(lengths) - spec.lags * len(lengths)
    noise = StudentNoise(blank(rows, outputs), blank()) if spec.noise == "student-t" else None
    return Trained(
        Parameters(layers, FreeStates(states, states), priors, noise),
        Chain(known[:-1], known[-1], spec.lags, None if noise is None else blank()),
        (final,) * records,
        None if spec.recognition is None else build_networks(spec.recognition.hidden, order, dims, inputs, blank),
    )


def check_chain(chain: Chain[Posterior]) -> None:
    """Raise `InputError` for kernels and noises that are not positive; an inverse lengthscale may be zero."""
    for layer in (*chain.hidden, chain.output):
        if layer is not None and not ((layer.w >= 0.0).all() and layer.variance > 0.0 and layer.sigma2 > 0.0):
            raise InputError("a layer has a kernel or a noise that is not positive")
    if chain.degrees is not None and not MIN_DEGREES <= chain.degrees < np.inf:
        raise InputError(
            f"its Student-t noise has {chain.degrees} degrees of freedom, and {MIN_DEGREES:g} is the least"
        )


def check_starts(starts: Sequence[StartState]) -> None:
    """Raise `InputError` for final states whose covariance is not symmetric and positive semi-definite."""
    for start in starts:
        cov = np.asarray(start.cov)
        largest = max(float(np.abs(cov).max()), np.finfo(np.float64).tiny)
        # In units of the largest entry, to compare with rounding.
        if not np.array_equal(cov, cov.T) or np.linalg.eigvalsh(cov / largest)[0] < -1e-9:
            raise InputError("a final state has an invalid covariance: not symmetric, or with negative variances")
