"""Bound of one sparse GP layer whose inducing outputs are integrated out (docs/theory/derivation.md, Eqs. 17 to 21a).

The bound and the predictions (posterior.py) share one factorisation (`factorise`):

    K_z = A Aᵀ,   B = I + σ⁻² A⁻¹ Ψ2 A⁻ᵀ = C Cᵀ,   c = σ⁻² C⁻¹ A⁻¹ Ψ1ᵀ Y
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float

from revarb.gp import psi
from revarb.gp.layer import Gaussians, Layer, Targets, project_tilt, rbf, subtract_linear
from revarb.runtime.machine import sum_over_rows
from revarb.runtime.numerics import AnyArray


class Sums(NamedTuple):
    """Sums over the rows of a layer: all that its bound and its posterior need of them."""

    projected: Float[AnyArray, "M Dy"]  # Ψ1ᵀ Y
    psi2: Float[AnyArray, "M M"]


def sum_rows(layer: Layer, x_hat: Gaussians, y: Float[AnyArray, "R Dy"]) -> Sums:
    """Compute Ψ1ᵀ Y and Ψ2, weighted sums over rows, on all devices of the current mesh (runtime/machine.py).

    `y` is what the layer's linear part, if there is one, leaves over (`subtract_linear`).
    """
    return sum_over_rows(_sum_share, layer, (x_hat, y))


def _sum_share(layer: Layer, rows: tuple[Gaussians, AnyArray]) -> Sums:
    x_hat, y = rows
    assert x_hat.variance is not None  # known regressors have no sums (`factorise_known`)
    arguments = (x_hat.mean, x_hat.variance, layer.zeta, layer.w, layer.variance, x_hat.weights)
    psi1 = psi.psi1(*arguments)
    projected = psi1.T @ y if layer.linear is None else psi1.T @ y + project_tilt(layer, x_hat, psi1)
    return Sums(projected, psi.psi2(*arguments))


class Factors(NamedTuple):
    """Inverse Cholesky factors of K_z and B, and the projected targets (Eqs. 17 to 20)."""

    inverse_A: Float[AnyArray, "M M"]
    inverse_C: Float[AnyArray, "M M"]
    excess: Float[AnyArray, "M M"]  # B − I
    c: Float[AnyArray, "M Dy"]


def factorise(K: Float[AnyArray, "M M"], sums: Sums, sigma2: Float[AnyArray, ""]) -> Factors:
    """Factorise K_z and B, and project the targets (Eqs. 17 to 20)."""
    inverse_A = _inverse_cholesky(K)
    excess = inverse_A @ sums.psi2 @ inverse_A.T / sigma2
    inverse_C = _inverse_cholesky(jnp.eye(K.shape[0]) + excess)
    return Factors(inverse_A, inverse_C, excess, inverse_C @ (inverse_A @ sums.projected) / sigma2)


def factorise_known(layer: Layer, x_hat: Gaussians, y: Float[AnyArray, "R Dy"], jitter: float) -> Factors:
    """Factorise K_z and B of regressors that are known exactly, without Ψ2.

    A⁻¹ Ψ2 A⁻ᵀ has the rounding of Ψ2, multiplied by up to 1 / (jitter σ²): where the noise is small that exceeds the I
    of B, which is then not positive definite. With V = σ⁻¹ A⁻¹ K_zf it is V Vᵀ, which is never indefinite.
    """
    A = jnp.linalg.cholesky(inducing_covariance(layer, jitter))
    roots = jnp.sqrt(x_hat.factors) / jnp.sqrt(layer.sigma2)  # in this order: a weight of zero has a derivative
    V = solve_triangular(A, (roots * rbf(x_hat.mean, layer.zeta, layer.w, layer.variance)).T, lower=True)
    excess = V @ V.T
    inverse_C = _inverse_cholesky(jnp.eye(len(A)) + excess)
    inverse_A = solve_triangular(A, jnp.eye(len(A)), lower=True)
    return Factors(inverse_A, inverse_C, excess, inverse_C @ (V @ (roots * y)))


def _inverse_cholesky(matrix: AnyArray) -> AnyArray:
    return solve_triangular(jnp.linalg.cholesky(matrix), jnp.eye(matrix.shape[0]), lower=True)


@jax.custom_vjp
def inducing_terms(K: Float[AnyArray, "M M"], sums: Sums, sigma2: Float[AnyArray, ""]) -> Float[AnyArray, ""]:
    """½ D_y tr(B − I) − ½ D_y log|B| + ½ |c|²: the terms of the layer's bound that depend on the inducing inputs.

    The derivative is written by hand (Eq. 21a): it reuses the factors of the forward pass, where automatic
    differentiation through the Cholesky factors and triangular solves takes twice the time.
    """
    return _inducing_terms_forward(K, sums, sigma2)[0]


def _inducing_terms_forward(K, sums, sigma2):
    factors = factorise(K, sums, sigma2)
    return _add_terms(factors), (factors, sigma2)


def _add_terms(factors: Factors) -> Float[AnyArray, ""]:
    outputs = factors.c.shape[1]
    half_log_det = -jnp.sum(jnp.log(jnp.diagonal(factors.inverse_C)))
    return outputs * (0.5 * jnp.trace(factors.excess) - half_log_det) + 0.5 * jnp.sum(factors.c**2)


def _inducing_terms_backward(stored, gradient):
    (inverse_A, inverse_C, excess, c), sigma2 = stored
    size, outputs = c.shape
    inverse_B = inverse_C.T @ inverse_C
    white = inverse_C.T @ c
    beta = inverse_A.T @ white
    trace_part = outputs * (jnp.eye(size) - inverse_B)
    beta_part = beta @ beta.T
    psi2_slope = inverse_A.T @ trace_part @ inverse_A - beta_part
    K_slope = inverse_A.T @ (trace_part - outputs * excess) @ inverse_A - beta_part
    sigma2_slope = jnp.trace(trace_part - outputs * excess) - jnp.sum(c**2) - jnp.sum(white**2)
    half = 0.5 * gradient
    return half * K_slope, Sums(gradient * beta / sigma2, half * psi2_slope / sigma2), half * sigma2_slope / sigma2


inducing_terms.defvjp(_inducing_terms_forward, _inducing_terms_backward)


def collapsed_bound(layer: Layer, x_hat: Gaussians, targets: Targets, jitter: float) -> Float[AnyArray, ""]:
    """The layer's term of the bound, inducing outputs integrated out (Eq. 21). All outputs share the kernel."""
    targets = subtract_linear(layer.linear, x_hat, targets)
    if x_hat.variance is None:
        return bound_of_factors(layer, x_hat, targets, factorise_known(layer, x_hat, targets.mean, jitter))
    return bound_of_sums(layer, x_hat, targets, sum_rows(layer, x_hat, targets.mean), jitter)


def bound_of_sums(layer: Layer, x_hat: Gaussians, targets: Targets, sums: Sums, jitter: float) -> Float[AnyArray, ""]:
    """The layer's term of the bound from its sums over rows; the targets are without the linear part.

    With weights it is that of a noise whose precision is multiplied by them, without their logarithms (Eq. 51).
    """
    inducing = inducing_terms(inducing_covariance(layer, jitter), sums, layer.sigma2)
    return _plain_terms(layer, x_hat, targets) + inducing


def bound_of_factors(layer: Layer, x_hat: Gaussians, targets: Targets, factors: Factors) -> Float[AnyArray, ""]:
    """The layer's term of the bound at regressors that are known exactly, without Ψ2 (`factorise_known`)."""
    return _plain_terms(layer, x_hat, targets) + _add_terms(factors)


def _plain_terms(layer: Layer, x_hat: Gaussians, targets: Targets) -> Float[AnyArray, ""]:
    # Those that do not depend on the inducing inputs.
    outputs = targets.mean.shape[1]
    sigma2 = layer.sigma2
    psi0 = x_hat.weight * layer.variance
    return (
        -0.5 * x_hat.rows * outputs * jnp.log(2.0 * jnp.pi * sigma2)
        - 0.5 * (jnp.sum(x_hat.factors * targets.mean**2) + targets.variance_sum) / sigma2
        - 0.5 * outputs * psi0 / sigma2
    )


def inducing_covariance(layer: Layer, jitter: float) -> AnyArray:
    """K_z with jitter on its diagonal, relative to the kernel variance."""
    identity = jnp.eye(layer.zeta.shape[0])
    return rbf(layer.zeta, layer.zeta, layer.w, layer.variance) + jitter * layer.variance * identity
