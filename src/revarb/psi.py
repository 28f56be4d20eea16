"""Psi statistics: the kernel's expectations under Gaussian regressors (docs/derivation.md, Eqs. 10 to 16).

Two kinds of Gaussian: training has many rows with independent entries (`psi1`, `psi2`), the free simulation has
one regressor with a full covariance (`psi1_full`, `psi2_full`).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float

from revarb.kernel import squared_distances
from revarb.numerics import AnyArray


def psi1(
    mu: Float[AnyArray, "R D"],
    lam: Float[AnyArray, "R D"],
    zeta: Float[AnyArray, "M D"],
    w: Float[AnyArray, " D"],
    variance: Float[AnyArray, ""],
) -> Float[AnyArray, "R M"]:
    """Ψ1 = ⟨k(x̂, ζ)⟩ for x̂ ~ N(mu, diag lam), row by row."""
    return variance * jnp.exp(_row_side(mu, lam, 0.5 * w) @ _point_side(zeta).T)


def psi2(
    mu: Float[AnyArray, "R D"],
    lam: Float[AnyArray, "R D"],
    zeta: Float[AnyArray, "M D"],
    w: Float[AnyArray, " D"],
    variance: Float[AnyArray, ""],
) -> Float[AnyArray, "M M"]:
    """Ψ2 = Σ_rows ⟨k(ζ, x̂) k(x̂, ζ')⟩, computed for the M(M+1)/2 pairs of inducing inputs only."""
    first, second = np.triu_indices(zeta.shape[0])
    middle = 0.5 * (zeta[first] + zeta[second])
    apart = -0.25 * (zeta[first] - zeta[second]) ** 2 @ w
    pairs = variance**2 * jnp.exp(apart) * sum_of_exponentials(_row_side(mu, lam, w), _point_side(middle))
    return pairs[_pair_of_entry(zeta.shape[0])]


@jax.custom_vjp
def sum_of_exponentials(a: Float[AnyArray, "R K"], b: Float[AnyArray, "P K"]) -> Float[AnyArray, " P"]:
    """Σ_r exp(a_r · b_p): nearly all of the time of a fit is spent here.

    Its derivative is written by hand: both products reuse the stored exponentials, and the incoming gradient
    scales the small factors instead of the large matrix.
    """
    return jnp.sum(jnp.exp(a @ b.T), axis=0)


def _sum_forward(a, b):
    exponentials = jnp.exp(a @ b.T)
    return jnp.sum(exponentials, axis=0), (a, b, exponentials)


def _sum_backward(stored, gradient):
    a, b, exponentials = stored
    return exponentials @ (gradient[:, None] * b), gradient[:, None] * (exponentials.T @ a)


sum_of_exponentials.defvjp(_sum_forward, _sum_backward)


def psi1_full(
    mu: Float[AnyArray, " D"],
    cov: Float[AnyArray, "D D"],
    zeta: Float[AnyArray, "M D"],
    w: Float[AnyArray, " D"],
    variance: Float[AnyArray, ""],
) -> tuple[Float[AnyArray, " M"], Float[AnyArray, "D M"]]:
    """Ψ1 for one x̂ ~ N(mu, cov), and (W⁻¹ + cov)⁻¹ (ζ − mu), which carries the covariance with x̂ onwards."""
    chol, spread = _whitened_cholesky(cov, w, 1.0)
    white = solve_triangular(chol, jnp.sqrt(w)[:, None] * (zeta - mu).T, lower=True)
    statistic = variance * jnp.exp(-0.5 * jnp.sum(white**2, axis=0) - spread)
    pull = jnp.sqrt(w)[:, None] * solve_triangular(chol, white, lower=True, trans="T")
    return statistic, pull


def psi2_full(
    mu: Float[AnyArray, " D"],
    cov: Float[AnyArray, "D D"],
    zeta: Float[AnyArray, "M D"],
    w: Float[AnyArray, " D"],
    variance: Float[AnyArray, ""],
    apart: Float[AnyArray, "M M"],
) -> Float[AnyArray, "M M"]:
    """Ψ2 for one x̂ ~ N(mu, cov); `apart` = `pair_distances(zeta, w)` does not change from step to step."""
    chol, spread = _whitened_cholesky(cov, w, 2.0)
    white = solve_triangular(chol, jnp.sqrt(w)[:, None] * (zeta - mu).T, lower=True)
    norms = jnp.sum(white**2, axis=0)
    # |v_m + v_m'|² / 4 is the distance of mu from the middle of the pair
    middle = 0.25 * (norms[:, None] + norms[None, :] + 2.0 * white.T @ white)
    return variance**2 * jnp.exp(apart - middle - spread)


def pair_distances(zeta: Float[AnyArray, "M D"], w: Float[AnyArray, " D"]) -> Float[AnyArray, "M M"]:
    """−¼ Σ_d w_d (ζ_d − ζ'_d)²: the part of log Ψ2 that does not depend on x̂."""
    return -0.25 * squared_distances(zeta, zeta, w)


def _row_side(mu: AnyArray, lam: AnyArray, precision: AnyArray) -> AnyArray:
    # exp(−Σ p (x − ζ)²) under x ~ N(mu, lam) is Π (1 + 2pλ)^-½ exp(−a (mu − ζ)²) with a = p / (1 + 2pλ).
    # The square is expanded, so that all rows and points together are one product of this with `_point_side`.
    widened = 1.0 + 2.0 * precision * lam
    a = precision / widened
    constant = -jnp.sum(a * mu**2 + 0.5 * jnp.log(widened), axis=1, keepdims=True)
    return jnp.concatenate([2.0 * a * mu, -a, constant], axis=1)


def _point_side(points: AnyArray) -> AnyArray:
    return jnp.concatenate([points, points**2, jnp.ones((points.shape[0], 1))], axis=1)


def _pair_of_entry(size: int) -> np.ndarray:
    # Where the entry (m, m') of a symmetric matrix stands in the list of np.triu_indices.
    first, second = np.triu_indices(size)
    index = np.empty((size, size), dtype=np.int32)
    index[first, second] = index[second, first] = np.arange(len(first), dtype=np.int32)
    return index


def _whitened_cholesky(cov: AnyArray, w: AnyArray, factor: float) -> tuple[AnyArray, AnyArray]:
    # Cholesky of I + factor · W½ cov W½ and half its log-determinant: safe for w → 0, where W⁻¹ is not.
    root = jnp.sqrt(w)
    chol = jnp.linalg.cholesky(jnp.eye(len(w)) + factor * root[:, None] * cov * root[None, :])
    return chol, jnp.sum(jnp.log(jnp.diagonal(chol)))
