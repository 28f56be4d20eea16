"""Posterior of a GP layer and its predictions at known and at Gaussian regressors.

docs/theory/derivation.md, Eqs. 23 to 27, and Eq. 48 with a linear part. The exact GP (Eqs. 37 and 38) is a layer whose
inducing inputs are the training rows.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Float

from revarb.gp import psi
from revarb.gp.collapsed import Factors, Sums, factorise, factorise_known, inducing_covariance, sum_rows
from revarb.gp.layer import Gaussians, Layer, Linear, Targets, rbf, subtract_linear
from revarb.runtime.numerics import AnyArray


class Posterior(eqx.Module):
    """Posterior of a GP with the mean k(x, ζ) β and the variance k(x, x) − k(x, ζ) G k(ζ, x).

    With a linear part, A x + b is added to the mean. It has all that a prediction needs; the training rows are not
    kept.
    """

    zeta: Float[AnyArray, "M D"]
    w: Float[AnyArray, " D"]
    variance: Float[AnyArray, ""]
    sigma2: Float[AnyArray, ""]
    beta: Float[AnyArray, "M Dy"]
    reduction: Float[AnyArray, "*Dy M M"]  # G: one for all outputs, or one per output if measured at different rows
    linear: Linear | None = None

    @property
    def outputs(self) -> int:
        """Number of functions that share the kernel."""
        return self.beta.shape[1]

    def mean(self, x: Float[AnyArray, "N D"]) -> Float[AnyArray, "N Dy"]:
        """Mean of f at known regressors."""
        return evaluate_mean(self, x)


class PosteriorMean(eqx.Module):
    """The part of a posterior that a mean-only run needs."""

    zeta: Float[AnyArray, "M D"]
    w: Float[AnyArray, " D"]
    variance: Float[AnyArray, ""]
    beta: Float[AnyArray, "M Dy"]
    linear: Linear | None = None

    @property
    def outputs(self) -> int:
        """Number of functions that share the kernel."""
        return self.beta.shape[1]

    def mean(self, x: Float[AnyArray, "N D"]) -> Float[AnyArray, "N Dy"]:
        """Mean of f at known regressors."""
        return evaluate_mean(self, x)


def evaluate_mean(layer: Posterior | PosteriorMean, x: Float[AnyArray, "N D"]) -> Float[AnyArray, "N Dy"]:
    """Evaluate the mean of f at known regressors (Eq. 24, and 45)."""
    gp_part = rbf(x, layer.zeta, layer.w, layer.variance) @ layer.beta
    return gp_part if layer.linear is None else gp_part + layer.linear.mean(x)


def compute_posterior(layer: Layer, x_hat: Gaussians, y: Float[AnyArray, "R Dy"], jitter: float) -> Posterior:
    """Compute β = A⁻ᵀ C⁻ᵀ c and G = K_z⁻¹ − (K_z + σ⁻²Ψ2)⁻¹ (Eqs. 23, 24)."""
    residual = subtract_linear(layer.linear, x_hat, Targets(y, 0.0)).mean
    if x_hat.variance is None:
        factors = factorise_known(layer, x_hat, residual, jitter)
    else:
        factors = factorise(inducing_covariance(layer, jitter), sum_rows(layer, x_hat, residual), layer.sigma2)
    inverse_A, inverse_CA = factors.inverse_A, factors.inverse_C @ factors.inverse_A
    reduction = inverse_A.T @ inverse_A - inverse_CA.T @ inverse_CA
    return Posterior(*_get_kernel(layer), inverse_CA.T @ factors.c, reduction, layer.linear)


def compute_posterior_mean(layer: Layer, sums: Sums, jitter: float) -> PosteriorMean:
    """Compute the mean of the posterior from sums over rows (Eq. 23)."""
    return mean_of_factors(layer, factorise(inducing_covariance(layer, jitter), sums, layer.sigma2))


def mean_of_factors(layer: Layer, factors: Factors) -> PosteriorMean:
    """The mean of the posterior from its factors (Eq. 23)."""
    beta = factors.inverse_A.T @ (factors.inverse_C.T @ factors.c)
    return PosteriorMean(layer.zeta, layer.w, layer.variance, beta, layer.linear)


def join_output_groups(parts: Sequence[Posterior], columns: Sequence[Sequence[int]]) -> Posterior:
    """Join posteriors of the same layer for different groups of outputs; `columns` has the outputs of each group."""
    order = np.argsort([column for group in columns for column in group])
    beta = jnp.concatenate([part.beta for part in parts], axis=1)[:, order]
    linear = join_linear_parts([part.linear for part in parts], order)
    if len(parts) == 1:
        return Posterior(*_get_kernel(parts[0]), beta, parts[0].reduction, linear)
    reductions = jnp.concatenate([jnp.stack([part.reduction] * part.outputs) for part in parts])
    return Posterior(*_get_kernel(parts[0]), beta, reductions[order], linear)


def join_mean_groups(parts: Sequence[PosteriorMean], columns: Sequence[Sequence[int]]) -> PosteriorMean:
    """Join means of the same layer for different groups of outputs; `columns` has the outputs of each group."""
    order = np.argsort([column for group in columns for column in group])
    beta = jnp.concatenate([part.beta for part in parts], axis=1)[:, order]
    linear = join_linear_parts([part.linear for part in parts], order)
    return PosteriorMean(parts[0].zeta, parts[0].w, parts[0].variance, beta, linear)


def join_linear_parts(parts: Sequence[Linear | None], order: np.ndarray) -> Linear | None:
    """Join the linear parts of groups of outputs, their columns sorted by `order`; None without linear parts."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    coefficients = jnp.concatenate([part.coefficients for part in known], axis=1)[:, order]
    return Linear(coefficients, jnp.concatenate([part.offset for part in known])[order])


def _get_kernel(layer: Posterior | Layer) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    return layer.zeta, layer.w, layer.variance, layer.sigma2


def predict_certain(
    layer: Posterior, x: Float[AnyArray, "N D"]
) -> tuple[Float[AnyArray, "N Dy"], Float[AnyArray, "N *Dy"]]:
    """Predict mean and variance of f at known regressors; outputs that share G share the variance."""
    cross = rbf(x, layer.zeta, layer.w, layer.variance)
    variance = layer.variance - jnp.sum((cross @ layer.reduction) * cross, axis=-1).T
    return layer.mean(x), jnp.maximum(variance, 0.0)


class GaussianPrediction(NamedTuple):
    """Moments of f(x̂) for x̂ ~ N(μ, S), and the gain that gives its covariance with any z correlated with x̂."""

    mean: Float[AnyArray, " Dy"]
    cov: Float[AnyArray, "Dy Dy"]
    gain: Float[AnyArray, "D Dy"]  # cov(z, f) = cov(z, x̂) · gain


class SplitPosterior(NamedTuple):
    """A posterior whose last regressors are known exactly (measured inputs) and whose first ones are uncertain.

    `zeta`, `w` and `pair_exponent` are those of the uncertain regressors, computed once for all steps. The known ones
    scale the psi statistics (`KnownPart`).
    """

    layer: Posterior
    zeta: Float[AnyArray, "M D"]
    w: Float[AnyArray, " D"]
    pair_exponent: Float[AnyArray, "M M"]


def split_posterior(layer: Posterior, uncertain: int) -> SplitPosterior:
    """Prepare a layer for regressors of which the first `uncertain` are random."""
    zeta, w = layer.zeta[:, :uncertain], layer.w[:uncertain]
    return SplitPosterior(layer, zeta, w, psi.pair_exponents(zeta, w))


class KnownPart(NamedTuple):
    """What known regressors contribute to a prediction: a factor on the psi statistics, and A u + b if linear."""

    factor: Float[AnyArray, "*T M"]
    shift: Float[AnyArray, "*T Dy"] | None


def compute_known_part(layer: Posterior, known: Float[AnyArray, "T K"]) -> KnownPart:
    """exp(−½ Σ w (u − ζ)²) and A u + b over the last K regressors, which are known exactly."""
    start = layer.zeta.shape[1] - known.shape[1]
    factor = rbf(known, layer.zeta[:, start:], layer.w[start:], jnp.ones(()))
    return KnownPart(
        factor, None if layer.linear is None else known @ layer.linear.coefficients[start:] + layer.linear.offset
    )


def nothing_known(layer: Posterior) -> KnownPart:
    """The known part of a layer all of whose regressors are uncertain."""
    return KnownPart(jnp.ones(layer.zeta.shape[0]), None if layer.linear is None else layer.linear.offset)


def predict_gaussian(
    split: SplitPosterior, mean: Float[AnyArray, " D"], cov: Float[AnyArray, "D D"], known: KnownPart
) -> GaussianPrediction:
    """Predict the moments of f at x̂ ~ N(mean, cov) with full covariance (Eqs. 25 to 27; 48 with a linear part)."""
    layer = split.layer
    psi1, slopes = psi.psi1_full(mean, cov, split.zeta, split.w, layer.variance)
    psi2 = psi.psi2_full(mean, cov, split.zeta, split.w, layer.variance, split.pair_exponent)
    psi1, psi2 = psi1 * known.factor, psi2 * known.factor[:, None] * known.factor[None, :]
    f_mean = psi1 @ layer.beta
    function_variance = jnp.broadcast_to(layer.variance - jnp.sum(layer.reduction * psi2, axis=(-2, -1)), f_mean.shape)
    mean_cov = layer.beta.T @ psi2 @ layer.beta - f_mean[:, None] * f_mean[None, :]
    gain = slopes @ (psi1[:, None] * layer.beta)
    if layer.linear is not None and known.shift is not None:
        coefficients = layer.linear.coefficients[: len(mean)]
        cross = coefficients.T @ cov @ gain
        mean_cov = mean_cov + coefficients.T @ cov @ coefficients + cross + cross.T
        f_mean, gain = f_mean + mean @ coefficients + known.shift, gain + coefficients
    # Both are differences of large numbers where the noise is small; rounding must not make a variance negative.
    correction = jnp.maximum(-jnp.diagonal(mean_cov), 0.0)
    f_cov = 0.5 * (mean_cov + mean_cov.T) + jnp.diag(jnp.maximum(function_variance, 0.0) + correction)
    return GaussianPrediction(f_mean, f_cov, gain)


def log_evidence(layer: Layer, y: Float[AnyArray, "R Dy"]) -> Float[AnyArray, ""]:
    """log N(y | 0, K + σ²I), summed over the outputs, which share the kernel (Eq. 37)."""
    rows, outputs = y.shape
    chol = _factorise_exact(layer)
    white = solve_triangular(chol, y, lower=True)
    log_determinant = 2.0 * jnp.sum(jnp.log(jnp.diagonal(chol)))
    return -0.5 * (jnp.sum(white**2) + outputs * (log_determinant + rows * jnp.log(2.0 * jnp.pi)))


def exact_posterior(layer: Layer, y: Float[AnyArray, "R Dy"]) -> Posterior:
    """The posterior with β = (K + σ²I)⁻¹ y and G = (K + σ²I)⁻¹ (Eq. 38)."""
    chol = _factorise_exact(layer)
    reduction = cho_solve((chol, True), jnp.eye(len(y)))
    return Posterior(layer.zeta, layer.w, layer.variance, layer.sigma2, cho_solve((chol, True), y), reduction)


def _factorise_exact(layer: Layer) -> Float[AnyArray, "R R"]:
    K = rbf(layer.zeta, layer.zeta, layer.w, layer.variance)
    return jnp.linalg.cholesky(K + layer.sigma2 * jnp.eye(len(K)))
