"""One sparse GP layer whose inducing outputs are integrated out: its bound and its predictions.

docs/derivation.md, Eqs. 17 to 27. Bound and predictions share one factorisation (`factorise`):

    K_z = A Aᵀ,   B = I + σ⁻² A⁻¹ Ψ2 A⁻ᵀ = C Cᵀ,   c = σ⁻² C⁻¹ A⁻¹ Ψ1ᵀ Y
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float

from revarb.gp import psi
from revarb.gp.kernel import rbf
from revarb.gp.layer import Gaussians, Layer, Targets
from revarb.runtime.mesh import sum_over_rows
from revarb.runtime.numerics import AnyArray


class Sums(NamedTuple):
    """All that a layer keeps of its rows, however many there are."""

    projected: Float[AnyArray, "M Dy"]  # Ψ1ᵀ Y
    psi2: Float[AnyArray, "M M"]


def row_sums(layer: Layer, x_hat: Gaussians, y: Float[AnyArray, "R Dy"]) -> Sums:
    """Ψ1ᵀ Y and Ψ2, by all devices of the mesh that is set (mesh.py)."""
    return sum_over_rows(_sums, layer, (x_hat, y))


def _sums(layer: Layer, rows: tuple[Gaussians, AnyArray]) -> Sums:
    x_hat, y = rows
    if x_hat.variance is None:  # the limit λ → 0, where Ψ2 is a plain product
        known = rbf(x_hat.mean, layer.zeta, layer.w, layer.variance)
        known = known if x_hat.measured is None else known * x_hat.measured[:, None]
        return Sums(known.T @ y, known.T @ known)
    arguments = (x_hat.mean, x_hat.variance, layer.zeta, layer.w, layer.variance, x_hat.measured)
    return Sums(psi.psi1(*arguments).T @ y, psi.psi2(*arguments))


class Factors(NamedTuple):
    """The factorisation that the bound and the predictions share."""

    inverse_A: Float[AnyArray, "M M"]
    inverse_C: Float[AnyArray, "M M"]
    excess: Float[AnyArray, "M M"]  # B − I
    c: Float[AnyArray, "M Dy"]


def factorise(K: Float[AnyArray, "M M"], sums: Sums, sigma2: Float[AnyArray, ""]) -> Factors:
    """Inverses of the Cholesky factors of K_z and B, and the projected targets c."""
    inverse_A = _inverse_cholesky(K)
    excess = inverse_A @ sums.psi2 @ inverse_A.T / sigma2
    inverse_C = _inverse_cholesky(jnp.eye(K.shape[0]) + excess)
    return Factors(inverse_A, inverse_C, excess, inverse_C @ (inverse_A @ sums.projected) / sigma2)


def _inverse_cholesky(matrix: AnyArray) -> AnyArray:
    return solve_triangular(jnp.linalg.cholesky(matrix), jnp.eye(matrix.shape[0]), lower=True)


@jax.custom_vjp
def inducing_terms(K: Float[AnyArray, "M M"], sums: Sums, sigma2: Float[AnyArray, ""]) -> Float[AnyArray, ""]:
    """½ D_y tr(B − I) − ½ D_y log|B| + ½ |c|²: all of the layer's bound that the inducing outputs have a part in.

    Its derivative is by hand (Eq. 21a): it needs a few products of what is there already, where a derivative of every
    Cholesky factor and every triangular solve would take twice the time.
    """
    return _inducing_terms_forward(K, sums, sigma2)[0]


def _inducing_terms_forward(K, sums, sigma2):
    factors = factorise(K, sums, sigma2)
    outputs = sums.projected.shape[1]
    half_log_det = -jnp.sum(jnp.log(jnp.diagonal(factors.inverse_C)))
    value = outputs * (0.5 * jnp.trace(factors.excess) - half_log_det) + 0.5 * jnp.sum(factors.c**2)
    return value, (factors, sigma2)


def _inducing_terms_backward(stored, gradient):
    (inverse_A, inverse_C, excess, c), sigma2 = stored
    size, outputs = c.shape
    inverse_B = inverse_C.T @ inverse_C
    white = inverse_C.T @ c
    beta = inverse_A.T @ white
    gained = outputs * (jnp.eye(size) - inverse_B)
    both = beta @ beta.T
    to_psi2 = inverse_A.T @ gained @ inverse_A - both
    to_K = inverse_A.T @ (gained - outputs * excess) @ inverse_A - both
    to_sigma2 = jnp.trace(gained - outputs * excess) - jnp.sum(c**2) - jnp.sum(white**2)
    half = 0.5 * gradient
    return half * to_K, Sums(gradient * beta / sigma2, half * to_psi2 / sigma2), half * to_sigma2 / sigma2


inducing_terms.defvjp(_inducing_terms_forward, _inducing_terms_backward)


def collapsed_bound(layer: Layer, x_hat: Gaussians, targets: Targets, jitter: float) -> Float[AnyArray, ""]:
    """The layer's share of the bound, inducing outputs integrated out (Eq. 21). Outputs share the kernel."""
    rows, outputs = x_hat.rows, targets.mean.shape[1]
    sigma2 = layer.sigma2
    psi0 = rows * layer.variance
    return (
        -0.5 * rows * outputs * jnp.log(2.0 * jnp.pi * sigma2)
        - 0.5 * (jnp.sum(targets.mean**2) + targets.variance_sum) / sigma2
        - 0.5 * outputs * psi0 / sigma2
        + inducing_terms(inducing_covariance(layer, jitter), row_sums(layer, x_hat, targets.mean), sigma2)
    )


def inducing_covariance(layer: Layer, jitter: float) -> AnyArray:
    # `jitter` is relative to the kernel variance.
    identity = jnp.eye(layer.zeta.shape[0])
    return rbf(layer.zeta, layer.zeta, layer.w, layer.variance) + jitter * layer.variance * identity
