"""What the standard deviation of one step from a known state needs beside the step, for CasADi and ONNX.

Every layer adds its own variance, that of its function at these regressors and that of its noise, and passes on the
variance of the layer below by its Jacobian: first order, where `simulate` matches moments. Noise and band width are the
calibrated ones. The outputs of an ensemble are a mixture.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError
from revarb.gp.posterior import Posterior
from revarb.models.base import Fitted
from revarb.models.ensemble import Ensemble
from revarb.simulation.chain import Chain, find_noise_variance
from revarb.simulation.formulas import RadialBasis, describe_layer


class StdLayer(NamedTuple):
    """A layer of a chain: its function, its variance, and where the values of the layer below are.

    The values of the layer below are the regressors first … first + below; those of the first layer are known.
    """

    formula: RadialBasis
    reductions: Float64[np.ndarray, "K M M"]  # G of Eq. 24, one per output; the kernel has variance 1
    noise: float
    first: int
    below: int


class StdMember(NamedTuple):
    """One chain of layers, the hidden ones first, and the factor on the standard deviation of its outputs."""

    layers: tuple[StdLayer, ...]
    width: float


def describe_std(model: Fitted) -> tuple[StdMember, ...]:
    """The members of a model with what their variance needs; a model without one is refused in a line."""
    parts = model.members if isinstance(model, Ensemble) else (model,)
    return tuple(StdMember(_list_layers(_get_chain(part)), _find_width(part)) for part in parts)


def _get_chain(model: Any) -> Chain[Posterior]:
    chain = getattr(model, "chain", None)
    if chain is None or not all(isinstance(layer, Posterior) for layer in (*chain.hidden, chain.last_layer)):
        raise InputError(
            f"a {type(model).__name__} has no variance of its own; leave with_std out, or take an RGP or a GP-NARX"
        )
    return chain


def _find_width(model: Any) -> float:
    calibration = getattr(model, "calibration", None)
    return 1.0 if calibration is None else float(calibration.width_factors(np.array([1]), cold=False)[0])


def _list_layers(chain: Chain[Posterior]) -> tuple[StdLayer, ...]:
    layers, below = [], 0
    for layer in (*chain.hidden, *(() if chain.output is None else (chain.output,))):
        formula = describe_layer(layer)
        assert isinstance(formula, RadialBasis)  # the formula of a posterior
        noise = float(find_noise_variance(chain) if layer is chain.last_layer else layer.sigma2)
        first = 0 if layer is chain.output else chain.lags * formula.outputs
        layers.append(StdLayer(formula, _scale_reductions(layer, formula), noise, first, below))
        below = formula.outputs
    return tuple(layers)


def _scale_reductions(layer: Posterior, formula: RadialBasis) -> Float64[np.ndarray, "K M M"]:
    reduction = formula.variance**2 * np.asarray(layer.reduction, dtype=np.float64)
    return np.broadcast_to(reduction, (formula.outputs, *reduction.shape[-2:]))
