"""Bayesian regression with a matrix-normal inverse-Wishart prior of its weights and noise covariance.

docs/theory/derivation.md, Eqs. 66 to 68.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from revarb.runtime.numerics import AnyArray


class WeightPrior(eqx.Module):
    """A | Q ~ MN(0, Q, diag(variances)), Q ~ IW(degrees, scale): the noise is the unit of the weights."""

    variances: Float[AnyArray, " n"]
    degrees: Float[AnyArray, ""]
    scale: Float[AnyArray, "Dx Dx"]


class Statistics(NamedTuple):
    """Sums over the rows of a regression of targets x on features φ."""

    targets: Float[AnyArray, "Dx Dx"]  # Σ x xᵀ
    products: Float[AnyArray, "Dx n"]  # Σ x φᵀ
    features: Float[AnyArray, "n n"]  # Σ φ φᵀ
    rows: Float[AnyArray, ""]


class WeightPosterior(eqx.Module):
    """A | Q ~ MN(mean, Q, rootᵀ root), Q ~ IW(degrees, scale), and the evidence of the regression."""

    mean: Float[AnyArray, "Dx n"]
    root: Float[AnyArray, "n n"]
    degrees: Float[AnyArray, ""]
    scale: Float[AnyArray, "Dx Dx"]
    log_evidence: Float[AnyArray, ""]  # up to a constant that the variances do not change

    def draw(self, key: Key[jax.Array, ""]) -> tuple[Float[AnyArray, "Dx n"], Float[AnyArray, "Dx Dx"]]:
        """Draw weights A and the noise covariance Q."""
        noise_key, weight_key = jax.random.split(key)
        Q = draw_inverse_wishart(noise_key, self.degrees, self.scale)
        normal = jax.random.normal(weight_key, self.mean.shape)
        return self.mean + jnp.linalg.cholesky(Q) @ normal @ self.root, Q


def collect_statistics(
    x: Float[AnyArray, "N Dx"], features: Float[AnyArray, "N n"], counted: Float[AnyArray, " N"]
) -> Statistics:
    """Sum over the rows of which `counted` is 1; 0 leaves a row out."""
    x, features = x * counted[:, None], features * counted[:, None]
    return Statistics(x.T @ x, x.T @ features, features.T @ features, jnp.sum(counted))


def update_weights(prior: WeightPrior, statistics: Statistics) -> WeightPosterior:
    """Posterior of weights and noise, in features scaled by their prior: a rapidly falling variance does no harm."""
    xx, xf, ff, rows = statistics
    std = jnp.sqrt(prior.variances)
    B = jnp.eye(len(std)) + std[:, None] * ff * std
    C = jnp.linalg.cholesky(B)
    whitened = jax.scipy.linalg.solve_triangular(C, (xf * std).T, lower=True)  # [n Dx]
    root = jax.scipy.linalg.solve_triangular(C, jnp.diag(std), lower=True)
    degrees, scale = prior.degrees + rows, prior.scale + xx - whitened.T @ whitened
    outputs, log_det = len(xx), jnp.sum(jnp.log(jnp.diag(C)))
    log_evidence = -outputs * log_det - 0.5 * degrees * jnp.linalg.slogdet(scale)[1]
    return WeightPosterior(whitened.T @ root, root, degrees, scale, log_evidence)


def draw_inverse_wishart(
    key: Key[jax.Array, ""], degrees: Float[AnyArray, ""], scale: Float[AnyArray, "D D"]
) -> Float[AnyArray, "D D"]:
    """Draw a covariance by Bartlett's decomposition of the Wishart distribution of its inverse."""
    diagonal_key, lower_key = jax.random.split(key)
    size = len(scale)
    chi = jnp.sqrt(jax.random.chisquare(diagonal_key, degrees - jnp.arange(size)))
    T = jnp.tril(jax.random.normal(lower_key, scale.shape), -1) + jnp.diag(chi)
    factor = jax.scipy.linalg.solve_triangular(T, jnp.linalg.cholesky(scale).T, lower=True)
    return factor.T @ factor
