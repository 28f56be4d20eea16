"""Noises and band widths of a model, found on held-out blocks and stored with it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float64, Shaped

from revarb.errors import InputError, check_integer, check_number
from revarb.gp.posterior import Posterior
from revarb.models.choice import format_error
from revarb.models.summary import SummaryTable
from revarb.simulation.chain import Chain

MAX_VALUE = 1e6  # largest noise or factor; a larger one is not plausible


@dataclass(frozen=True)
class Calibration:
    """Noises and band widths that `simulate` uses in place of the fitted ones.

    Attributes
    ----------
    latent_scale : float
        Factor on the noise variance of the hidden layers.
    output_noise : float
        Noise variance of the outputs, z-scored.
    edges : tuple of int
        Last step of every horizon band but the last one, counted from the start of a run.
    factors : tuple of float
        Factor on the standard deviation in the middle of every horizon band; between the middles it is interpolated.
    stretches : int
        Number of held-out blocks behind these numbers.
    error : float
        Held-out error: the geometric mean over the blocks of the root mean square error of a free run, z-scored.
    linear_error, mean_error : float or None
        The same of ARX models, and of the training mean. None where no ARX model could be fitted, and in files written
        before version 0.2.
    degrees_of_freedom : float or None
        Of the Student-t distribution of a measurement; None: it is Gaussian.

    Examples
    --------
    >>> import numpy as np, revarb
    >>> calibration = revarb.Calibration(1.0, 0.02, edges=(10,), factors=(1.0, 1.3), stretches=12, error=0.2)
    >>> calibration.width_factors(np.array([1, 10, 11, 20])).round(3).tolist()
    [1.0, 1.135, 1.165, 1.3]
    """

    latent_scale: float
    output_noise: float
    edges: tuple[int, ...]
    factors: tuple[float, ...]
    stretches: int
    error: float
    linear_error: float | None = None
    mean_error: float | None = None
    degrees_of_freedom: float | None = None

    def __post_init__(self):
        check_number("latent_scale", self.latent_scale, least=0.0)
        check_number("output_noise", self.output_noise, above=0.0)
        for name in ("error", "linear_error", "mean_error"):
            if name == "error" or getattr(self, name) is not None:
                check_number(name, getattr(self, name), least=0.0)
        check_integer("stretches", self.stretches, least=1)
        if self.degrees_of_freedom is not None:
            check_number("degrees_of_freedom", self.degrees_of_freedom, above=2.0)
        object.__setattr__(self, "edges", tuple(check_integer("edge", edge, least=1) for edge in self.edges))
        object.__setattr__(self, "factors", tuple(check_number("factor", each, above=0.0) for each in self.factors))
        if max(self.latent_scale, self.output_noise, *self.factors) > MAX_VALUE:
            raise InputError(f"a calibration's noise and factors are at most {MAX_VALUE:g}, received {self}")
        if len(self.factors) != len(self.edges) + 1 or list(self.edges) != sorted(set(self.edges)):
            raise InputError(f"a calibration needs ascending edges and one factor more, received {self}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Calibration":
        """The calibration from the plain values of a model file.

        Parameters
        ----------
        values : dict
            Values by the names of the attributes; `edges` and `factors` may be lists.

        Returns
        -------
        Calibration
        """
        return cls(**values)

    def apply_to(self, chain: Chain[Posterior]) -> Chain[Posterior]:
        """The chain with calibrated noise.

        Parameters
        ----------
        chain : Chain
            The trained layers, with noise as fitted.

        Returns
        -------
        Chain
            A copy with the noise of the hidden layers multiplied by `latent_scale`, and `output_noise` at the output.
        """
        degrees = self.degrees_of_freedom
        if degrees is None:
            return replace(replace_noises(chain, self.latent_scale, self.output_noise), degrees=None)
        scale2 = self.output_noise * (degrees - 2.0) / degrees
        return replace(replace_noises(chain, self.latent_scale, scale2), degrees=np.asarray(degrees))

    @property
    def middles(self) -> tuple[float, ...]:
        """The step in the middle of every horizon band; that of the last one is as far beyond the last edge as the one
        before is in front of it.
        """
        if not self.edges:
            return (1.0,)
        middles = [0.5 * (begin + 1 + end) for begin, end in pairwise((0, *self.edges))]
        return (*middles, 2.0 * self.edges[-1] + 1.0 - middles[-1])

    def width_factors(
        self, steps: Shaped[np.ndarray, " T"], unsettled: float | Float64[np.ndarray, " T"] = 0.0
    ) -> Float64[np.ndarray, " T"]:
        """The factor on the standard deviation of every row, by its number of steps since the last measured output.

        Parameters
        ----------
        steps : array [T]
            Number of steps since the last measured output, infinity where there is none; the first row is step 1.
        unsettled : float or array [T]
            Share of the variance that is due to the start of a cold run: nothing is calibrated of that.

        Returns
        -------
        array [T]
        """
        factors = np.interp(steps, self.middles, self.factors)
        return factors + (1.0 - factors) * unsettled

    def table(self) -> SummaryTable:
        """The held-out error and the band widths, for a summary.

        Returns
        -------
        SummaryTable
        """
        steps = [*(f"{middle:g} steps ahead" for middle in self.middles[:-1]), "long and cold runs"]
        rows = [
            ("held-out blocks", str(self.stretches)),
            ("held-out error of cold runs", f"{format_error(self.error)} of the output's standard deviation"),
            *((f"band width, {where}", f"x {each:.3g}") for where, each in zip(steps, self.factors, strict=True)),
        ]
        return SummaryTable("calibration", ("", ""), rows)


def replace_noises(chain: Chain[Posterior], latent_scale: float, output_noise: float) -> Chain[Posterior]:
    """The chain with its latent noise scaled and its output noise replaced."""
    hidden = tuple(replace(layer, sigma2=np.asarray(layer.sigma2 * latent_scale)) for layer in chain.hidden)
    output = replace(chain.last_layer, sigma2=np.asarray(output_noise, dtype=np.float64))
    return replace(chain, hidden=hidden, output=output)
