"""Linear part of a layer: f(x̂) = A x̂ + b + GP (docs/theory/derivation.md, Eqs. 45 to 48).

The GP then only has to learn what is not linear, and falls back to a straight line where there is no data.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Float

from revarb.gp.layer import Gaussians, Layer, Linear, Targets
from revarb.runtime.numerics import AnyArray


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
