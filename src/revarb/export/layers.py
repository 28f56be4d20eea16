"""Layers of a step as exports need them: a radial basis with expanded squares, and the variance that a layer adds."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError
from revarb.export.step_model import MemberParts
from revarb.gp.posterior import Posterior
from revarb.simulation.chain import find_noise_variance
from revarb.simulation.formulas import RadialBasis, describe_layer


class ExpandedBasis(NamedTuple):
    """y = Σ_m exp(products_m · d + offsets_m − Σ half_w · d²) · weights_m with d = x − centre.

    For tools that are fastest at products of matrices: one product has all distances. Around the centre of the inducing
    inputs that costs few digits.
    """

    centre: Float64[np.ndarray, " D"]
    products: Float64[np.ndarray, "M D"]
    offsets: Float64[np.ndarray, " M"]
    half_w: Float64[np.ndarray, " D"]
    weights: Float64[np.ndarray, "M Dy"]


def expand_basis(formula: RadialBasis) -> ExpandedBasis:
    """The radial basis of a layer, without its affine part."""
    centre, half_w = formula.zeta.mean(0), 0.5 * formula.w
    zeta = formula.zeta - centre
    return ExpandedBasis(centre, zeta * formula.w, -(zeta**2) @ half_w, half_w, formula.variance * formula.beta)


class GaussianLayer(NamedTuple):
    """A GP layer of a chain: its function, its variance, and where the values of the layer below are.

    The values of the layer below are the regressors first … first + below; those of the first layer are known.
    """

    formula: RadialBasis
    reductions: Float64[np.ndarray, "K M M"]  # G of Eq. 24 times variance²; one for all outputs, or one per output
    noise: float
    first: int
    below: int


def list_gaussian_layers(part: MemberParts) -> tuple[GaussianLayer, ...]:
    """The layers of a chain of GPs, the hidden ones first; a model with a mean only is refused."""
    chain = part.chain
    if not all(isinstance(layer, Posterior) for layer in (*chain.hidden, chain.last_layer)):
        raise InputError(f"a {part.kind} has no variance of its own; leave with_std out, or take an RGP or a GP-NARX")
    layers, below = [], 0
    for layer in (*chain.hidden, *(() if chain.output is None else (chain.output,))):
        formula = describe_layer(layer)
        assert isinstance(formula, RadialBasis)  # the formula of a posterior
        reduction = formula.variance**2 * np.asarray(layer.reduction, dtype=np.float64)
        noise = float(find_noise_variance(chain) if layer is chain.last_layer else layer.sigma2)
        first = 0 if layer is chain.output else chain.lags * formula.outputs
        layers.append(GaussianLayer(formula, reduction.reshape(-1, *reduction.shape[-2:]), noise, first, below))
        below = formula.outputs
    return tuple(layers)
