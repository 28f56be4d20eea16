"""One sparse GP layer whose inducing outputs are integrated out: its bound and its predictions.

docs/derivation.md, Eqs. 17 to 27. Bound and predictions share one factorisation (`factorise`):

    K_z = A Aᵀ,   B = I + σ⁻² A⁻¹ Ψ2 A⁻ᵀ = C Cᵀ,   c = σ⁻² C⁻¹ A⁻¹ Ψ1ᵀ Y
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float

from revarb import psi
from revarb.kernel import rbf
from revarb.numerics import AnyArray


class Layer(eqx.Module):
    """Parameters of one GP layer. Positive ones are stored unconstrained and used through softplus."""

    zeta: Float[AnyArray, "M D"]
    raw_w: Float[AnyArray, " D"]
    raw_variance: Float[AnyArray, ""]
    raw_sigma2: Float[AnyArray, ""]

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


def unconstrained(positive: AnyArray | float) -> Float[AnyArray, "..."]:
    """The value whose softplus is `positive`."""
    return positive + jnp.log(-jnp.expm1(-jnp.asarray(positive)))


class Targets(NamedTuple):
    """What a layer explains: the means of its targets, and the sum of their variances (0 for measured ones)."""

    mean: Float[AnyArray, "R Dy"]
    variance_sum: Float[AnyArray, ""] | float


class Gaussians(NamedTuple):
    """Independent Gaussian regressors x̂, one row each; without a variance they are known."""

    mean: Float[AnyArray, "R D"]
    variance: Float[AnyArray, "R D"] | None


class Factors(NamedTuple):
    """The factorisation that the bound and the predictions share."""

    chol_K: Float[AnyArray, "M M"]
    chol_B: Float[AnyArray, "M M"]
    c: Float[AnyArray, "M Dy"]
    trace: Float[AnyArray, ""]  # tr(B − I) = σ⁻² tr(K_z⁻¹ Ψ2)


def factorise(layer: Layer, x_hat: Gaussians, y: Float[AnyArray, "R Dy"], jitter: float) -> Factors:
    """Cholesky factors of K_z and B, and the projected targets c. `jitter` is relative to the kernel variance."""
    zeta, w, variance, sigma2 = layer.zeta, layer.w, layer.variance, layer.sigma2
    identity = jnp.eye(zeta.shape[0])
    chol_K = jnp.linalg.cholesky(rbf(zeta, zeta, w, variance) + jitter * variance * identity)
    psi1, psi2 = _statistics(layer, x_hat)
    half = solve_triangular(chol_K, psi2, lower=True)
    excess = solve_triangular(chol_K, half.T, lower=True) / sigma2
    chol_B = jnp.linalg.cholesky(identity + excess)
    c = solve_triangular(chol_B, solve_triangular(chol_K, psi1.T @ y, lower=True), lower=True) / sigma2
    return Factors(chol_K, chol_B, c, jnp.trace(excess))


def _statistics(layer: Layer, x_hat: Gaussians) -> tuple[Float[AnyArray, "R M"], Float[AnyArray, "M M"]]:
    if x_hat.variance is None:  # the limit λ → 0, where Ψ2 is a plain product
        known = rbf(x_hat.mean, layer.zeta, layer.w, layer.variance)
        return known, known.T @ known
    arguments = (x_hat.mean, x_hat.variance, layer.zeta, layer.w, layer.variance)
    return psi.psi1(*arguments), psi.psi2(*arguments)


def collapsed_bound(layer: Layer, x_hat: Gaussians, targets: Targets, jitter: float) -> Float[AnyArray, ""]:
    """The layer's share of the bound, inducing outputs integrated out (Eq. 21). Outputs share the kernel."""
    rows, outputs = targets.mean.shape
    sigma2 = layer.sigma2
    factors = factorise(layer, x_hat, targets.mean, jitter)
    psi0 = rows * layer.variance
    return (
        -0.5 * rows * outputs * jnp.log(2.0 * jnp.pi * sigma2)
        - 0.5 * (jnp.sum(targets.mean**2) + targets.variance_sum) / sigma2
        - 0.5 * outputs * (psi0 / sigma2 - factors.trace)
        - outputs * jnp.sum(jnp.log(jnp.diagonal(factors.chol_B)))
        + 0.5 * jnp.sum(factors.c**2)
    )


class Posterior(eqx.Module):
    """What a GP layer knows after training: all that a prediction needs, and nothing of the training rows.

    For any GP whose mean is k(x, ζ) β and whose variance is k(x, x) − k(x, ζ) G k(ζ, x).
    """

    zeta: Float[AnyArray, "M D"]
    w: Float[AnyArray, " D"]
    variance: Float[AnyArray, ""]
    sigma2: Float[AnyArray, ""]
    beta: Float[AnyArray, "M Dy"]
    reduction: Float[AnyArray, "M M"]  # G

    @property
    def outputs(self) -> int:
        """Number of functions that share the kernel."""
        return self.beta.shape[1]

    def mean(self, x: Float[AnyArray, "N D"]) -> Float[AnyArray, "N Dy"]:
        """Mean of f at known regressors."""
        return rbf(x, self.zeta, self.w, self.variance) @ self.beta


def posterior(layer: Layer, x_hat: Gaussians, y: Float[AnyArray, "R Dy"], jitter: float) -> Posterior:
    """β = A⁻ᵀ C⁻ᵀ c and G = K_z⁻¹ − (K_z + σ⁻²Ψ2)⁻¹ (Eqs. 23, 24), by triangular solves."""
    factors = factorise(layer, x_hat, y, jitter)
    identity = jnp.eye(layer.zeta.shape[0])
    inverse_A = solve_triangular(factors.chol_K, identity, lower=True)
    inverse_CA = solve_triangular(factors.chol_B, inverse_A, lower=True)
    reduction = inverse_A.T @ inverse_A - inverse_CA.T @ inverse_CA
    return Posterior(layer.zeta, layer.w, layer.variance, layer.sigma2, inverse_CA.T @ factors.c, reduction)


def predict_certain(
    layer: Posterior, x: Float[AnyArray, "N D"]
) -> tuple[Float[AnyArray, "N Dy"], Float[AnyArray, " N"]]:
    """Mean and variance of f at known regressors; the variance is the same for all outputs."""
    cross = rbf(x, layer.zeta, layer.w, layer.variance)
    variance = layer.variance - jnp.sum((cross @ layer.reduction) * cross, axis=1)
    return cross @ layer.beta, jnp.maximum(variance, 0.0)


class GaussianPrediction(NamedTuple):
    """Moments of f(x̂) for x̂ ~ N(μ, S), and what carries its covariance with anything correlated with x̂."""

    mean: Float[AnyArray, " Dy"]
    cov: Float[AnyArray, "Dy Dy"]
    gain: Float[AnyArray, "D Dy"]  # cov(z, f) = cov(z, x̂) · gain


class SplitPosterior(NamedTuple):
    """A posterior whose last regressors are known exactly (measured inputs) and the others uncertain.

    The known ones only scale the statistics, by `known_factor`; the rest is prepared once for all steps.
    """

    layer: Posterior
    zeta: Float[AnyArray, "M D"]
    w: Float[AnyArray, " D"]
    apart: Float[AnyArray, "M M"]


def split_posterior(layer: Posterior, uncertain: int) -> SplitPosterior:
    """Prepare a layer for regressors of which the first `uncertain` are random."""
    zeta, w = layer.zeta[:, :uncertain], layer.w[:uncertain]
    return SplitPosterior(layer, zeta, w, psi.pair_distances(zeta, w))


def known_factor(layer: Posterior, known: Float[AnyArray, "T K"]) -> Float[AnyArray, "T M"]:
    """exp(−½ Σ w (u − ζ)²) over the last K regressors, which are known."""
    start = layer.zeta.shape[1] - known.shape[1]
    return rbf(known, layer.zeta[:, start:], layer.w[start:], jnp.ones(()))


def predict_gaussian(
    split: SplitPosterior,
    mean: Float[AnyArray, " D"],
    cov: Float[AnyArray, "D D"],
    factor: Float[AnyArray, " M"],
) -> GaussianPrediction:
    """Moments of f at x̂ ~ N(mean, cov) with full covariance (Eqs. 25 to 27)."""
    layer = split.layer
    psi1, pull = psi.psi1_full(mean, cov, split.zeta, split.w, layer.variance)
    psi2 = psi.psi2_full(mean, cov, split.zeta, split.w, layer.variance, split.apart)
    psi1, psi2 = psi1 * factor, psi2 * factor[:, None] * factor[None, :]
    f_mean = psi1 @ layer.beta
    own = layer.variance - jnp.sum(layer.reduction * psi2)
    spread = layer.beta.T @ psi2 @ layer.beta - f_mean[:, None] * f_mean[None, :]
    # Both are differences of large numbers where the noise is small; rounding must not make a variance negative.
    lost = jnp.maximum(-jnp.diagonal(spread), 0.0)
    f_cov = 0.5 * (spread + spread.T) + jnp.diag(jnp.maximum(own, 0.0) + lost)
    return GaussianPrediction(f_mean, f_cov, pull @ (psi1[:, None] * layer.beta))
