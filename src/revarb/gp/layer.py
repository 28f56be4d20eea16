"""Parameters, regressors and targets of one GP layer."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from revarb.runtime.numerics import AnyArray


class Linear(eqx.Module):
    """y = x̂ · coefficients + offset: an ARX model, or the linear part of a layer."""

    coefficients: Float[AnyArray, "*B D Dy"]
    offset: Float[AnyArray, "*B Dy"]

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.offset.shape[-1]

    def mean(self, x: Float[AnyArray, "N D"]) -> Float[AnyArray, "N Dy"]:
        """The linear prediction."""
        return x @ self.coefficients + self.offset


class Layer(eqx.Module):
    """Parameters of one GP layer. Positive ones are stored unconstrained (`raw_`) and used through softplus."""

    zeta: Float[AnyArray, "M D"]
    raw_w: Float[AnyArray, " D"]
    raw_variance: Float[AnyArray, ""]
    raw_sigma2: Float[AnyArray, ""]
    linear: Linear | None = None  # f(x̂) = A x̂ + b + GP (linear.py)

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


def inverse_softplus(positive: AnyArray | float) -> Float[AnyArray, "..."]:
    """The value whose softplus is `positive`: from a natural parameter to the unconstrained one."""
    return positive + jnp.log(-jnp.expm1(-jnp.asarray(positive)))


class Targets(NamedTuple):
    """Targets of a layer: their means, and the sum of their variances (0 for measured targets)."""

    mean: Float[AnyArray, "R Dy"]
    variance_sum: Float[AnyArray, ""] | float


class Gaussians(NamedTuple):
    """Independent Gaussian regressors x̂, one row each. The last D − U are known exactly; without a variance, all are.

    `weights` multiply the precision of the noise, row by row: 0 where the target is missing. Without them all are 1.
    """

    mean: Float[AnyArray, "R D"]
    variance: Float[AnyArray, "R U"] | None
    weights: Float[AnyArray, " R"] | None = None

    @property
    def rows(self) -> Float[AnyArray, ""] | int:
        """Number of rows with a measured target."""
        return self.mean.shape[0] if self.weights is None else jnp.sum(self.weights > 0.0, dtype=jnp.float64)

    @property
    def weight(self) -> Float[AnyArray, ""] | int:
        """Sum of the weights of all rows."""
        return self.mean.shape[0] if self.weights is None else jnp.sum(self.weights)

    @property
    def factors(self) -> Float[AnyArray, "R 1"] | float:
        """The weights as a column, for values of the rows."""
        return 1.0 if self.weights is None else self.weights[:, None]
