"""Whole functions drawn from a GP layer: the same draw can be asked at any regressor, again and again.

Pathwise conditioning (Matheron's rule; docs/derivation.md, Eqs. 35a to 35d): a draw of the prior, made of random waves,
and a correction in the kernel's own bumps around ζ, by which it comes to know what the layer has learned.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from revarb.gp.kernel import rbf
from revarb.gp.posterior import Posterior
from revarb.runtime.numerics import AnyArray

FEATURES = 512
"""Frequencies per layer: the standard deviations of drawn functions are then right to 3 % (docs/decisions.md)."""


TERMS = 8  # of the power series of sine and cosine: up to an eighth of a turn the rest is below rounding


class DrawnFunctions(eqx.Module):
    """Draws of a layer's function, all of them weighted sums of the same waves and bumps."""

    frequencies: Float[AnyArray, "D F"]
    zeta: Float[AnyArray, "M D"]
    w: Float[AnyArray, " D"]
    variance: Float[AnyArray, ""]
    sigma2: Float[AnyArray, ""]
    weights: Float[AnyArray, "count B Dy"]  # of 2F waves, then of M bumps

    @property
    def outputs(self) -> int:
        """Number of values of each draw."""
        return self.weights.shape[2]

    def at(self, x: Float[AnyArray, "count D"]) -> Float[AnyArray, "count Dy"]:
        """Every draw at its own regressor."""
        bumps = rbf(x, self.zeta, self.w, self.variance)
        basis = jnp.concatenate([_waves(x, self.frequencies, self.variance), bumps], axis=1)
        return jnp.einsum("kb,kbd->kd", basis, self.weights)


def draw_functions(layer: Posterior, key: Key[jax.Array, ""], count: int, features: int = FEATURES) -> DrawnFunctions:
    """`count` independent draws of f, which share their frequencies (Eqs. 35a to 35c)."""
    frequency_key, wave_key, doubt_key = jax.random.split(key, 3)
    inducing, regressors = layer.zeta.shape
    frequencies = jnp.sqrt(layer.w)[:, None] * jax.random.normal(frequency_key, (regressors, features))
    theta = jax.random.normal(wave_key, (count, 2 * features, layer.outputs))
    doubt = jax.random.normal(doubt_key, (count, inducing, layer.outputs))
    seen = layer.reduction @ _waves(layer.zeta, frequencies, layer.variance)
    each = "d" if layer.reduction.ndim == 3 else ""  # outputs that were measured at other rows have a G of their own
    known = jnp.einsum(f"{each}mb,kbd->kmd", seen, theta)
    v = layer.beta - known + jnp.einsum(f"{each}mp,kpd->kmd", _residual_root(layer), doubt)
    weights = jnp.concatenate([theta, v], axis=1)
    return DrawnFunctions(frequencies, layer.zeta, layer.w, layer.variance, layer.sigma2, weights)


def _waves(x: AnyArray, frequencies: AnyArray, variance: AnyArray) -> Float[AnyArray, "N B"]:
    # ϕ(x) of Eq. 35a: cosine and sine of every frequency, scaled so that |φ(x)|² is the kernel's variance.
    waves = jnp.concatenate(_cosine_and_sine(x @ frequencies), axis=1)
    return jnp.sqrt(variance / frequencies.shape[1]) * waves


def _cosine_and_sine(phase: AnyArray) -> tuple[AnyArray, AnyArray]:
    # XLA's own take ten times as long on a CPU and would be most of a simulation's time. Here: the power series of a
    # quarter of the angle, which is then doubled twice.
    turns = phase / (2.0 * math.pi)
    quarter = 0.5 * math.pi * (turns - jnp.round(turns))
    cosine, sine = _series(quarter**2, 0), quarter * _series(quarter**2, 1)
    for _ in range(2):
        cosine, sine = cosine**2 - sine**2, 2.0 * sine * cosine
    return cosine, sine


def _series(square: AnyArray, odd: int) -> AnyArray:
    total = jnp.zeros_like(square)
    for k in reversed(range(TERMS)):
        total = total * square + (-1.0) ** k / math.factorial(2 * k + odd)
    return total


def _residual_root(layer: Posterior) -> Float[AnyArray, "*Dy M M"]:
    # A root of G − G K G. Where ζ are crowded G is large, and the plain difference has negative eigenvalues far beyond
    # rounding. In the coordinates in which K is the identity, G has eigenvalues p between 0 (nothing is known) and 1,
    # and the difference is p (1 − p) (Eq. 35d).
    K = rbf(layer.zeta, layer.zeta, layer.w, layer.variance)
    spread, axes = jnp.linalg.eigh(K)
    real = spread > len(K) * jnp.finfo(K.dtype).eps * spread[-1]  # the others are rounding, and no function has them
    scale = jnp.sqrt(jnp.where(real, spread, 1.0))
    whitened = jnp.where(real, scale, 0.0)[:, None] * (axes.T @ layer.reduction @ axes) * jnp.where(real, scale, 0.0)
    p, turn = jnp.linalg.eigh(whitened)
    p = jnp.clip(p, 0.0, 1.0)
    return axes @ (jnp.where(real, 1.0 / scale, 0.0)[:, None] * turn * jnp.sqrt(p * (1.0 - p))[..., None, :])
