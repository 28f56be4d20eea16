"""What held-out stretches have said about a model's noise and bands: a few numbers that are stored with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Bool, Float64, Int

from revarb.errors import InputError, check_integer, check_number
from revarb.gp.posterior import Posterior
from revarb.simulation.chain import Chain

MAX_VALUE = 1e6  # of a noise or a factor: more is no calibration


@dataclass(frozen=True)
class Calibration:
    """How `simulate` differs from the fit, so that its bands mean what they say (docs/decisions.md, "Calibration").

    latent_scale  factor on the noise of the hidden layers
    output_noise  variance of the noise of the outputs, z-scored
    edges         last steps of the horizon bands but the last one, counted from the start of a run
    factors       what `interval` widens its band by, whatever its level, for each horizon band
    stretches     number of held-out stretches behind these numbers
    error         root mean square error of the median stretch, z-scored, free run from the beginning of its record
    """

    latent_scale: float
    output_noise: float
    edges: tuple[int, ...]
    factors: tuple[float, ...]
    stretches: int
    error: float

    def __post_init__(self):
        check_number("latent_scale", self.latent_scale, least=0.0)
        check_number("output_noise", self.output_noise, above=0.0)
        check_number("error", self.error, least=0.0)
        check_integer("stretches", self.stretches, least=1)
        object.__setattr__(self, "edges", tuple(check_integer("edge", edge, least=1) for edge in self.edges))
        object.__setattr__(self, "factors", tuple(check_number("factor", each, above=0.0) for each in self.factors))
        if max(self.latent_scale, self.output_noise, *self.factors) > MAX_VALUE:
            raise InputError(f"a calibration's noise and factors are at most {MAX_VALUE:g}, received {self}")
        if len(self.factors) != len(self.edges) + 1 or list(self.edges) != sorted(set(self.edges)):
            raise InputError(f"a calibration needs ascending edges and one factor more, received {self}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Calibration":
        """The calibration from the plain values of a model file."""
        return cls(**{**values, "edges": tuple(values["edges"]), "factors": tuple(values["factors"])})

    def apply_to(self, chain: Chain[Posterior]) -> Chain[Posterior]:
        """The chain with calibrated noise."""
        return replace_noises(chain, self.latent_scale, self.output_noise)

    def widening(self, steps: Int[np.ndarray, " T"], cold: bool | Bool[np.ndarray, " T"]) -> Float64[np.ndarray, " T"]:
        """The factor of every row, by the number of steps since the start; a cold row knows as little as a late one."""
        bands = np.where(cold, len(self.edges), np.searchsorted(self.edges, steps, side="left"))
        return np.array(self.factors)[bands]


def replace_noises(chain: Chain[Posterior], latent_scale: float, output_noise: float) -> Chain[Posterior]:
    """The chain with its latent noise scaled, and another noise of the outputs."""
    scaled = [layer.sigma2 * latent_scale for layer in chain.hidden]
    return eqx.tree_at(_noises, chain, [*scaled, np.float64(output_noise)])


def _noises(chain: Chain[Posterior]) -> list[Any]:
    assert chain.output is not None
    return [layer.sigma2 for layer in (*chain.hidden, chain.output)]
