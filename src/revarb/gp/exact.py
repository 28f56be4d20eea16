"""Evidence and posterior of the exact GP with the same kernel (docs/theory/derivation.md, Eqs. 37 and 38).

Its regressors are the `zeta` of a `Layer`: an exact GP is a layer whose inducing inputs are the training rows.
"""

import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Float

from revarb.gp.kernel import rbf
from revarb.gp.layer import Layer
from revarb.gp.posterior import Posterior
from revarb.runtime.numerics import AnyArray


def log_evidence(layer: Layer, y: Float[AnyArray, "R Dy"]) -> Float[AnyArray, ""]:
    """log N(y | 0, K + σ²I), summed over the outputs, which share the kernel (Eq. 37)."""
    rows, outputs = y.shape
    chol = _factorise(layer)
    white = solve_triangular(chol, y, lower=True)
    log_determinant = 2.0 * jnp.sum(jnp.log(jnp.diagonal(chol)))
    return -0.5 * (jnp.sum(white**2) + outputs * (log_determinant + rows * jnp.log(2.0 * jnp.pi)))


def exact_posterior(layer: Layer, y: Float[AnyArray, "R Dy"]) -> Posterior:
    """The posterior with β = (K + σ²I)⁻¹ y and G = (K + σ²I)⁻¹ (Eq. 38)."""
    chol = _factorise(layer)
    reduction = cho_solve((chol, True), jnp.eye(len(y)))
    return Posterior(layer.zeta, layer.w, layer.variance, layer.sigma2, cho_solve((chol, True), y), reduction)


def _factorise(layer: Layer) -> Float[AnyArray, "R R"]:
    K = rbf(layer.zeta, layer.zeta, layer.w, layer.variance)
    return jnp.linalg.cholesky(K + layer.sigma2 * jnp.eye(len(K)))
