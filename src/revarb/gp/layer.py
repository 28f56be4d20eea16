"""Kernel, parameters, regressors and targets of one GP layer, and its linear part.

f(x̂) = A x̂ + b + GP (docs/theory/derivation.md, Eqs. 45 to 48): the GP then only has to learn what is not linear, and
falls back to a straight line where there is no data.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from revarb.runtime.numerics import AnyArray


def rbf(
    a: Float[AnyArray, "N D"], b: Float[AnyArray, "M D"], w: Float[AnyArray, " D"], variance: Float[AnyArray, ""]
) -> Float[AnyArray, "N M"]:
    """The squared exponential kernel k(a, b) = variance · exp(−½ Σ_d w_d (a_d − b_d)²), one w_d per regressor (ARD)."""
    return variance * jnp.exp(-0.5 * squared_distances(a, b, w))


def squared_distances(
    a: Float[AnyArray, "N D"], b: Float[AnyArray, "M D"], w: Float[AnyArray, " D"]
) -> Float[AnyArray, "N M"]:
    """Σ_d w_d (a_d − b_d)², the square expanded so that all pairs are one matrix product."""
    squares = (a**2 @ w)[:, None] + (b**2 @ w)[None, :] - 2.0 * (a * w) @ b.T
    return jnp.maximum(squares, 0.0)  # rounding can give −1e-16 where a = b


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
    linear: Linear | None = None  # f(x̂) = A x̂ + b + GP

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


def subtract_linear(linear: Linear | None, x_hat: Gaussians, targets: Targets) -> Targets:
    """The targets of the GP: what the linear part leaves over, and its variance (Eq. 46)."""
    if linear is None:
        return targets
    residual = targets.mean - linear.mean(x_hat.mean)
    if x_hat.variance is None:
        return Targets(residual, targets.variance_sum)
    uncertain = linear.coefficients[: x_hat.variance.shape[1]]
    return Targets(residual, targets.variance_sum + jnp.sum((x_hat.variance @ uncertain**2) * x_hat.factors))


def project_tilt(layer: Layer, x_hat: Gaussians, psi1: Float[AnyArray, "R M"]) -> Float[AnyArray, "M Dy"]:
    """Σ_i ψ1_im Σ_d A_d s_id (μ̂_id − ζ_md): what Ψ1ᵀY gains because x̂ and k(x̂, ζ) are correlated (Eq. 47)."""
    assert layer.linear is not None and x_hat.variance is not None
    uncertain = x_hat.variance.shape[1]
    coefficients, widened = layer.linear.coefficients[:uncertain], layer.w[:uncertain] * x_hat.variance
    s = widened / (1.0 + widened)
    at_means = psi1.T @ ((s * x_hat.mean[:, :uncertain]) @ coefficients)
    return at_means - (layer.zeta[:, :uncertain] * (psi1.T @ s)) @ coefficients


def select_outputs(layer: Layer, columns: AnyArray) -> Layer:
    """The layer for some of its outputs: they share the kernel, and each has its own linear part."""
    if layer.linear is None:
        return layer
    chosen = Linear(layer.linear.coefficients[:, columns], layer.linear.offset[columns])
    return eqx.tree_at(lambda each: each.linear, layer, chosen)
