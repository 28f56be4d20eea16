"""Posterior of a GP layer and its predictions at known and at Gaussian regressors.

docs/theory/derivation.md, Eqs. 23 to 27.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from revarb.gp import psi
from revarb.gp.collapsed import factorise, inducing_covariance, sum_rows
from revarb.gp.kernel import rbf
from revarb.gp.layer import Gaussians, Layer
from revarb.runtime.numerics import AnyArray


class Posterior(eqx.Module):
    """Posterior of a GP with the mean k(x, ζ) β and the variance k(x, x) − k(x, ζ) G k(ζ, x).

    It has all that a prediction needs; the training rows are not kept.
    """

    zeta: Float[AnyArray, "M D"]
    w: Float[AnyArray, " D"]
    variance: Float[AnyArray, ""]
    sigma2: Float[AnyArray, ""]
    beta: Float[AnyArray, "M Dy"]
    reduction: Float[AnyArray, "*Dy M M"]  # G: one for all outputs, or one per output if measured at different rows

    @property
    def outputs(self) -> int:
        """Number of functions that share the kernel."""
        return self.beta.shape[1]

    def mean(self, x: Float[AnyArray, "N D"]) -> Float[AnyArray, "N Dy"]:
        """Mean of f at known regressors."""
        return rbf(x, self.zeta, self.w, self.variance) @ self.beta


def compute_posterior(layer: Layer, x_hat: Gaussians, y: Float[AnyArray, "R Dy"], jitter: float) -> Posterior:
    """Compute β = A⁻ᵀ C⁻ᵀ c and G = K_z⁻¹ − (K_z + σ⁻²Ψ2)⁻¹ (Eqs. 23, 24)."""
    factors = factorise(inducing_covariance(layer, jitter), sum_rows(layer, x_hat, y), layer.sigma2)
    inverse_A, inverse_CA = factors.inverse_A, factors.inverse_C @ factors.inverse_A
    reduction = inverse_A.T @ inverse_A - inverse_CA.T @ inverse_CA
    return Posterior(layer.zeta, layer.w, layer.variance, layer.sigma2, inverse_CA.T @ factors.c, reduction)


def join_output_groups(parts: Sequence[Posterior], columns: Sequence[Sequence[int]]) -> Posterior:
    """Join posteriors of the same layer for different groups of outputs; `columns` has the outputs of each group."""
    order = np.argsort([column for group in columns for column in group])
    beta = jnp.concatenate([part.beta for part in parts], axis=1)[:, order]
    if len(parts) == 1:
        return Posterior(*_get_kernel(parts[0]), beta, parts[0].reduction)
    reductions = jnp.concatenate([jnp.stack([part.reduction] * part.outputs) for part in parts])
    return Posterior(*_get_kernel(parts[0]), beta, reductions[order])


def _get_kernel(layer: Posterior) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    return layer.zeta, layer.w, layer.variance, layer.sigma2


def predict_certain(
    layer: Posterior, x: Float[AnyArray, "N D"]
) -> tuple[Float[AnyArray, "N Dy"], Float[AnyArray, "N *Dy"]]:
    """Predict mean and variance of f at known regressors; outputs that share G share the variance."""
    cross = rbf(x, layer.zeta, layer.w, layer.variance)
    variance = layer.variance - jnp.sum((cross @ layer.reduction) * cross, axis=-1).T
    return cross @ layer.beta, jnp.maximum(variance, 0.0)


class GaussianPrediction(NamedTuple):
    """Moments of f(x̂) for x̂ ~ N(μ, S), and the gain that gives its covariance with any z correlated with x̂."""

    mean: Float[AnyArray, " Dy"]
    cov: Float[AnyArray, "Dy Dy"]
    gain: Float[AnyArray, "D Dy"]  # cov(z, f) = cov(z, x̂) · gain


class SplitPosterior(NamedTuple):
    """A posterior whose last regressors are known exactly (measured inputs) and whose first ones are uncertain.

    `zeta`, `w` and `pair_exponent` are those of the uncertain regressors, computed once for all steps. The known ones
    scale the psi statistics by `known_factor`.
    """

    layer: Posterior
    zeta: Float[AnyArray, "M D"]
    w: Float[AnyArray, " D"]
    pair_exponent: Float[AnyArray, "M M"]


def split_posterior(layer: Posterior, uncertain: int) -> SplitPosterior:
    """Prepare a layer for regressors of which the first `uncertain` are random."""
    zeta, w = layer.zeta[:, :uncertain], layer.w[:uncertain]
    return SplitPosterior(layer, zeta, w, psi.pair_exponents(zeta, w))


def known_factor(layer: Posterior, known: Float[AnyArray, "T K"]) -> Float[AnyArray, "T M"]:
    """exp(−½ Σ w (u − ζ)²) over the last K regressors, which are known exactly."""
    start = layer.zeta.shape[1] - known.shape[1]
    return rbf(known, layer.zeta[:, start:], layer.w[start:], jnp.ones(()))


def predict_gaussian(
    split: SplitPosterior,
    mean: Float[AnyArray, " D"],
    cov: Float[AnyArray, "D D"],
    factor: Float[AnyArray, " M"],
) -> GaussianPrediction:
    """Predict the moments of f at x̂ ~ N(mean, cov) with full covariance (Eqs. 25 to 27)."""
    layer = split.layer
    psi1, slopes = psi.psi1_full(mean, cov, split.zeta, split.w, layer.variance)
    psi2 = psi.psi2_full(mean, cov, split.zeta, split.w, layer.variance, split.pair_exponent)
    psi1, psi2 = psi1 * factor, psi2 * factor[:, None] * factor[None, :]
    f_mean = psi1 @ layer.beta
    function_variance = jnp.broadcast_to(layer.variance - jnp.sum(layer.reduction * psi2, axis=(-2, -1)), f_mean.shape)
    mean_cov = layer.beta.T @ psi2 @ layer.beta - f_mean[:, None] * f_mean[None, :]
    # Both are differences of large numbers where the noise is small; rounding must not make a variance negative.
    correction = jnp.maximum(-jnp.diagonal(mean_cov), 0.0)
    f_cov = 0.5 * (mean_cov + mean_cov.T) + jnp.diag(jnp.maximum(function_variance, 0.0) + correction)
    return GaussianPrediction(f_mean, f_cov, slopes @ (psi1[:, None] * layer.beta))
