"""The propagated moments of a model in plain arrays: what an export with standard deviations adds to the step."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64

from revarb.errors import InputError
from revarb.gp.posterior import Posterior
from revarb.models.base import Fitted
from revarb.models.by_residuals import FittedByResiduals
from revarb.models.calibration import Calibration
from revarb.models.ensemble import Ensemble
from revarb.simulation.chain import Chain, find_noise_variance


class MomentLayer(NamedTuple):
    """What a layer of the step lacks: the variance of its function, and of the noise that is added to its values."""

    variance: float  # of the kernel
    reduction: Float64[np.ndarray, "K M M"]  # G of Eq. 24; one for all outputs, or one per output
    noise: float


@dataclass(frozen=True, eq=False)
class MomentModel:
    """Variances of all layers, the hidden ones first, and factors on the standard deviation.

    `factors[k]` holds up to step `edges[k]` after the start, the last one beyond, and in cold runs.
    """

    layers: tuple[MomentLayer, ...]
    edges: tuple[int, ...]
    factors: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class ResidualModel:
    """Standard deviations 1 … K steps after a measured start, and in the last row that of later steps and cold runs."""

    std: Float64[np.ndarray, "K1 Dy"]  # raw units


def make_moment_model(model: Fitted) -> MomentModel | ResidualModel:
    """The standard deviations of a model; one that cannot export them is refused in a line."""
    if isinstance(model, FittedByResiduals):
        steps = getattr(model, "horizon_std", np.empty((0, len(model.residual_std))))
        return ResidualModel(model.scaling.raw_std(np.concatenate([steps, model.residual_std[None]])))
    if isinstance(model, Ensemble):
        raise InputError(
            f"the standard deviation of an ensemble cannot be exported, only the mean of its {len(model)} members; "
            "leave it out, or export one of its members"
        )
    chain = getattr(model, "chain", None)
    if not isinstance(chain, Chain) or not all(isinstance(layer, Posterior) for layer in _list_layers(chain)):
        raise InputError(f"the standard deviation of a {type(model).__name__} cannot be exported; leave it out")
    noises = [
        *(layer.sigma2 for layer in chain.hidden),
        *(() if chain.output is None else (find_noise_variance(chain),)),
    ]
    calibration: Calibration | None = getattr(model, "calibration", None)
    edges, factors = ((), (1.0,)) if calibration is None else (calibration.edges, calibration.factors)
    return MomentModel(tuple(map(_describe, _list_layers(chain), noises)), edges, factors)


def _list_layers(chain: Chain[Posterior]) -> list[Posterior]:
    return [*chain.hidden, *(() if chain.output is None else (chain.output,))]


def _describe(layer: Posterior, noise: Any) -> MomentLayer:
    reduction = np.asarray(layer.reduction, dtype=np.float64)
    return MomentLayer(float(layer.variance), reduction.reshape(-1, *reduction.shape[-2:]), float(noise))
