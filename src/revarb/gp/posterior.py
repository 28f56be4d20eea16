"""Posterior of a GP layer and its predictions at known and at Gaussian regressors (docs/theory/derivation.md, Eqs. 22 to 27)."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from revarb.gp import psi
from revarb.gp.collapsed import factorise, inducing_covariance, row_sums
from revarb.gp.kernel import rbf
from revarb.gp.layer import Gaussians, Layer
from revarb.runtime.numerics import AnyArray


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


def compute_posterior(layer: Layer, x_hat: Gaussians, y: Float[AnyArray, "R Dy"], jitter: float) -> Posterior:
    """β = A⁻ᵀ C⁻ᵀ c and G = K_z⁻¹ − (K_z + σ⁻²Ψ2)⁻¹ (Eqs. 23, 24)."""
    factors = factorise(inducing_covariance(layer, jitter), row_sums(layer, x_hat, y), layer.sigma2)
    inverse_A, inverse_CA = factors.inverse_A, factors.inverse_C @ factors.inverse_A
    reduction = inverse_A.T @ inverse_A - inverse_CA.T @ inverse_CA
    return Posterior(layer.zeta, layer.w, layer.variance, layer.sigma2, inverse_CA.T @ factors.c, reduction)


def join_output_groups(parts: Sequence[Posterior], columns: Sequence[Sequence[int]]) -> Posterior:
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
    pair_exponent: Float[AnyArray, "M M"]


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
    psi2 = psi.psi2_full(mean, cov, split.zeta, split.w, layer.variance, split.pair_exponent)
    psi1, psi2 = psi1 * factor, psi2 * factor[:, None] * factor[None, :]
    f_mean = psi1 @ layer.beta
    own = jnp.broadcast_to(layer.variance - jnp.sum(layer.reduction * psi2, axis=(-2, -1)), f_mean.shape)
    spread = layer.beta.T @ psi2 @ layer.beta - f_mean[:, None] * f_mean[None, :]
    # Both are differences of large numbers where the noise is small; rounding must not make a variance negative.
    lost = jnp.maximum(-jnp.diagonal(spread), 0.0)
    f_cov = 0.5 * (spread + spread.T) + jnp.diag(jnp.maximum(own, 0.0) + lost)
    return GaussianPrediction(f_mean, f_cov, pull @ (psi1[:, None] * layer.beta))
