"""Functions drawn from the posterior of a GP layer, each of which can be evaluated at any number of regressors.

Pathwise conditioning (Matheron's rule; docs/theory/derivation.md, Eqs. 35a to 35d): a draw from the prior, a sum of
random cosine and sine waves, plus a correction, a sum of kernels centred at ζ, that makes it a draw from the posterior.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from revarb.gp.layer import Linear, rbf
from revarb.gp.posterior import Posterior
from revarb.runtime.numerics import AnyArray

FEATURES = 512  # frequencies per layer: the error of the standard deviation is then 3 % (docs/design/decisions)
TERMS = 8  # terms of the power series of sine and cosine: up to π/4 the remainder is below rounding


class DrawnFunctions(eqx.Module):
    """Draws of a layer's function: weighted sums of 2F waves and of M kernels centred at ζ."""

    frequencies: Float[AnyArray, "D F"]
    zeta: Float[AnyArray, "M D"]
    w: Float[AnyArray, " D"]
    variance: Float[AnyArray, ""]
    sigma2: Float[AnyArray, ""]
    weights: Float[AnyArray, "count B Dy"]  # of the 2F waves, then of the M kernels
    linear: Linear | None = None  # the same for all draws

    @property
    def outputs(self) -> int:
        """Number of outputs of each draw."""
        return self.weights.shape[2]

    def evaluate(self, x: Float[AnyArray, "count D"]) -> Float[AnyArray, "count Dy"]:
        """Evaluate every draw at its own regressor (Eq. 35b)."""
        kernels = rbf(x, self.zeta, self.w, self.variance)
        basis = jnp.concatenate([_waves(x, self.frequencies, self.variance), kernels], axis=1)
        gp_part = jnp.einsum("kb,kbd->kd", basis, self.weights)
        return gp_part if self.linear is None else gp_part + self.linear.mean(x)


def draw_functions(layer: Posterior, key: Key[jax.Array, ""], count: int, features: int = FEATURES) -> DrawnFunctions:
    """Draw `count` independent functions from a posterior; they share their frequencies (Eqs. 35a to 35c)."""
    frequency_key, wave_key, residual_key = jax.random.split(key, 3)
    inducing, regressors = layer.zeta.shape
    frequencies = jnp.sqrt(layer.w)[:, None] * jax.random.normal(frequency_key, (regressors, features))
    theta = jax.random.normal(wave_key, (count, 2 * features, layer.outputs))
    residual_normals = jax.random.normal(residual_key, (count, inducing, layer.outputs))
    reduced_waves = layer.reduction @ _waves(layer.zeta, frequencies, layer.variance)  # G Φ
    each = "d" if layer.reduction.ndim == 3 else ""  # outputs measured at different rows have their own G
    prior_part = jnp.einsum(f"{each}mb,kbd->kmd", reduced_waves, theta)
    v = layer.beta - prior_part + jnp.einsum(f"{each}mp,kpd->kmd", _residual_root(layer), residual_normals)
    weights = jnp.concatenate([theta, v], axis=1)
    return DrawnFunctions(frequencies, layer.zeta, layer.w, layer.variance, layer.sigma2, weights, layer.linear)


def _waves(x: AnyArray, frequencies: AnyArray, variance: AnyArray) -> Float[AnyArray, "N B"]:
    # φ(x) of Eq. 35a: cosine and sine of every frequency, scaled so that |φ(x)|² is the kernel variance.
    waves = jnp.concatenate(_cosine_and_sine(x @ frequencies), axis=1)
    return jnp.sqrt(variance / frequencies.shape[1]) * waves


def _cosine_and_sine(phase: AnyArray) -> tuple[AnyArray, AnyArray]:
    # XLA's functions take ten times as long on a CPU, which would be most of a simulation's time. Here: the power
    # series at a quarter of the angle, which is then doubled twice.
    turns = phase / (2.0 * math.pi)
    quarter = 0.5 * math.pi * (turns - jnp.round(turns))
    cosine, sine = _power_series(quarter**2, 0), quarter * _power_series(quarter**2, 1)
    for _ in range(2):
        cosine, sine = cosine**2 - sine**2, 2.0 * sine * cosine
    return cosine, sine


def _power_series(square: AnyArray, odd: int) -> AnyArray:
    total = jnp.zeros_like(square)
    for k in reversed(range(TERMS)):
        total = total * square + (-1.0) ** k / math.factorial(2 * k + odd)
    return total


def _residual_root(layer: Posterior) -> Float[AnyArray, "*Dy M M"]:
    # A root of G − G K G (Eq. 35d). Where inducing inputs are close together, G is large, and the plain difference has
    # negative eigenvalues far beyond rounding. In the coordinates in which K is the identity, G has eigenvalues p
    # between 0 (nothing was learned) and 1, and the difference has the eigenvalues p (1 − p).
    K = rbf(layer.zeta, layer.zeta, layer.w, layer.variance)
    eigenvalues, eigenvectors = jnp.linalg.eigh(K)
    significant = eigenvalues > len(K) * jnp.finfo(K.dtype).eps * eigenvalues[-1]  # the others are rounding errors
    root = jnp.sqrt(jnp.where(significant, eigenvalues, 1.0))
    scale = jnp.where(significant, root, 0.0)
    whitened = scale[:, None] * (eigenvectors.T @ layer.reduction @ eigenvectors) * scale
    p, rotation = jnp.linalg.eigh(whitened)
    p = jnp.clip(p, 0.0, 1.0)
    unscaled = jnp.where(significant, 1.0 / root, 0.0)[:, None] * rotation * jnp.sqrt(p * (1.0 - p))[..., None, :]
    return eigenvectors @ unscaled
