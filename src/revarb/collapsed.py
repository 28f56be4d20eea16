"""One sparse GP layer whose inducing outputs are integrated out: its bound and its predictions.

docs/derivation.md, Eqs. 17 to 27. Bound and predictions share one factorisation (`factorise`):

    K_z = A Aᵀ,   B = I + σ⁻² A⁻¹ Ψ2 A⁻ᵀ = C Cᵀ,   c = σ⁻² C⁻¹ A⁻¹ Ψ1ᵀ Y
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Bool, Float

from revarb import psi
from revarb.kernel import rbf
from revarb.mesh import sum_over_rows
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
    """Independent Gaussian regressors x̂, one row each. The last D − U of them are known; without a variance, all.

    `seen` says which rows have a measured target; without it, all. The targets of the others must be zero.
    """

    mean: Float[AnyArray, "R D"]
    variance: Float[AnyArray, "R U"] | None
    seen: Bool[AnyArray, " R"] | None = None

    @property
    def measured(self) -> Float[AnyArray, ""] | int:
        """Number of rows with a measured target."""
        return self.mean.shape[0] if self.seen is None else jnp.sum(self.seen, dtype=jnp.float64)


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
        known = known if x_hat.seen is None else known * x_hat.seen[:, None]
        return Sums(known.T @ y, known.T @ known)
    arguments = (x_hat.mean, x_hat.variance, layer.zeta, layer.w, layer.variance, x_hat.seen)
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
def explained(K: Float[AnyArray, "M M"], sums: Sums, sigma2: Float[AnyArray, ""]) -> Float[AnyArray, ""]:
    """½ D_y tr(B − I) − ½ D_y log|B| + ½ |c|²: all of the layer's bound that the inducing outputs have a part in.

    Its derivative is by hand (Eq. 21a): it needs a few products of what is there already, where a derivative of every
    Cholesky factor and every triangular solve would take twice the time.
    """
    return _explained_forward(K, sums, sigma2)[0]


def _explained_forward(K, sums, sigma2):
    factors = factorise(K, sums, sigma2)
    outputs = sums.projected.shape[1]
    half_log_det = -jnp.sum(jnp.log(jnp.diagonal(factors.inverse_C)))
    value = outputs * (0.5 * jnp.trace(factors.excess) - half_log_det) + 0.5 * jnp.sum(factors.c**2)
    return value, (factors, sigma2)


def _explained_backward(stored, gradient):
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


explained.defvjp(_explained_forward, _explained_backward)


def collapsed_bound(layer: Layer, x_hat: Gaussians, targets: Targets, jitter: float) -> Float[AnyArray, ""]:
    """The layer's share of the bound, inducing outputs integrated out (Eq. 21). Outputs share the kernel."""
    rows, outputs = x_hat.measured, targets.mean.shape[1]
    sigma2 = layer.sigma2
    psi0 = rows * layer.variance
    return (
        -0.5 * rows * outputs * jnp.log(2.0 * jnp.pi * sigma2)
        - 0.5 * (jnp.sum(targets.mean**2) + targets.variance_sum) / sigma2
        - 0.5 * outputs * psi0 / sigma2
        + explained(_inducing_covariance(layer, jitter), row_sums(layer, x_hat, targets.mean), sigma2)
    )


def _inducing_covariance(layer: Layer, jitter: float) -> AnyArray:
    # `jitter` is relative to the kernel variance.
    identity = jnp.eye(layer.zeta.shape[0])
    return rbf(layer.zeta, layer.zeta, layer.w, layer.variance) + jitter * layer.variance * identity


class Posterior(eqx.Module):
    """What a GP layer knows after training: all that a prediction needs, and nothing of the training rows.

    For any GP whose mean is k(x, ζ) β and whose variance is k(x, x) − k(x, ζ) G k(ζ, x).
    """

    zeta: Float[AnyArray, "M D"]
    w: Float[AnyArray, " D"]
    variance: Float[AnyArray, ""]
    sigma2: Float[AnyArray, ""]
    beta: Float[AnyArray, "M Dy"]
    reduction: Float[AnyArray, "*Dy M M"]  # G, one for all outputs, or one each where they were measured at other rows

    @property
    def outputs(self) -> int:
        """Number of functions that share the kernel."""
        return self.beta.shape[1]

    def mean(self, x: Float[AnyArray, "N D"]) -> Float[AnyArray, "N Dy"]:
        """Mean of f at known regressors."""
        return rbf(x, self.zeta, self.w, self.variance) @ self.beta


def posterior(layer: Layer, x_hat: Gaussians, y: Float[AnyArray, "R Dy"], jitter: float) -> Posterior:
    """β = A⁻ᵀ C⁻ᵀ c and G = K_z⁻¹ − (K_z + σ⁻²Ψ2)⁻¹ (Eqs. 23, 24)."""
    factors = factorise(_inducing_covariance(layer, jitter), row_sums(layer, x_hat, y), layer.sigma2)
    inverse_A, inverse_CA = factors.inverse_A, factors.inverse_C @ factors.inverse_A
    reduction = inverse_A.T @ inverse_A - inverse_CA.T @ inverse_CA
    return Posterior(layer.zeta, layer.w, layer.variance, layer.sigma2, inverse_CA.T @ factors.c, reduction)


def with_outputs_apart(parts: Sequence[Posterior], columns: Sequence[Sequence[int]]) -> Posterior:
    """One posterior from several of the same layer, each of which knows some of the outputs (their columns)."""
    order = np.argsort([column for group in columns for column in group])
    beta = jnp.concatenate([part.beta for part in parts], axis=1)[:, order]
    if len(parts) == 1:
        return Posterior(*_kernel_of(parts[0]), beta, parts[0].reduction)
    reductions = jnp.concatenate([jnp.stack([part.reduction] * part.outputs) for part in parts])
    return Posterior(*_kernel_of(parts[0]), beta, reductions[order])


def _kernel_of(layer: Posterior) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    return layer.zeta, layer.w, layer.variance, layer.sigma2


def predict_certain(
    layer: Posterior, x: Float[AnyArray, "N D"]
) -> tuple[Float[AnyArray, "N Dy"], Float[AnyArray, "N *Dy"]]:
    """Mean and variance of f at known regressors; outputs that share their G share the variance."""
    cross = rbf(x, layer.zeta, layer.w, layer.variance)
    variance = layer.variance - jnp.sum((cross @ layer.reduction) * cross, axis=-1).T
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
    own = jnp.broadcast_to(layer.variance - jnp.sum(layer.reduction * psi2, axis=(-2, -1)), f_mean.shape)
    spread = layer.beta.T @ psi2 @ layer.beta - f_mean[:, None] * f_mean[None, :]
    # Both are differences of large numbers where the noise is small; rounding must not make a variance negative.
    lost = jnp.maximum(-jnp.diagonal(spread), 0.0)
    f_cov = 0.5 * (spread + spread.T) + jnp.diag(jnp.maximum(own, 0.0) + lost)
    return GaussianPrediction(f_mean, f_cov, pull @ (psi1[:, None] * layer.beta))
