"""Parameters, regressors and targets of one GP layer."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from revarb.runtime.numerics import AnyArray


class Layer(eqx.Module):
    """Parameters of one GP layer. Positive ones are stored unconstrained and used through softplus."""

    zeta: Float[AnyArray, "M D"]
    raw_w: Float[AnyArray, " D"]
    raw_variance: Float[AnyArray, ""]
    raw_sigma2: Float[AnyArray, ""]

    @property
    def w(self) -> Float[AnyArray, " D"]:
        """Inverse squared lengthscales w_d."""
        return jax.nn.softplus(self.raw_w)

    @property
    def variance(self) -> Float[AnyArray, ""]:
        """Kernel variance σ_f²."""
        return jax.nn.softplus(self.raw_variance)

    @property
    def sigma2(self) -> Float[AnyArray, ""]:
        """Noise variance σ_h²."""
        return jax.nn.softplus(self.raw_sigma2)


def unconstrained(positive: AnyArray | float) -> Float[AnyArray, "..."]:
    """The value whose softplus is `positive`."""
    return positive + jnp.log(-jnp.expm1(-jnp.asarray(positive)))


class Targets(NamedTuple):
    """What a layer explains: the means of its targets, and the sum of their variances (0 for measured ones)."""

    mean: Float[AnyArray, "R Dy"]
    variance_sum: Float[AnyArray, ""] | float


class Gaussians(NamedTuple):
    """Independent Gaussian regressors x̂, one row each. The last D − U of them are known; without a variance, all.

    `measured` says which rows have a measured target; without it, all. The targets of the others must be zero.
    """

    mean: Float[AnyArray, "R D"]
    variance: Float[AnyArray, "R U"] | None
    measured: Bool[AnyArray, " R"] | None = None

    @property
    def rows(self) -> Float[AnyArray, ""] | int:
        """Number of rows with a measured target."""
        return self.mean.shape[0] if self.measured is None else jnp.sum(self.measured, dtype=jnp.float64)
