"""The squared exponential (RBF) kernel with one inverse squared lengthscale w_d per regressor (ARD)."""

import jax.numpy as jnp
from jaxtyping import Float

from revarb.runtime.numerics import AnyArray


def rbf(
    a: Float[AnyArray, "N D"], b: Float[AnyArray, "M D"], w: Float[AnyArray, " D"], variance: Float[AnyArray, ""]
) -> Float[AnyArray, "N M"]:
    """k(a, b) = variance · exp(−½ Σ_d w_d (a_d − b_d)²)."""
    return variance * jnp.exp(-0.5 * squared_distances(a, b, w))


def squared_distances(
    a: Float[AnyArray, "N D"], b: Float[AnyArray, "M D"], w: Float[AnyArray, " D"]
) -> Float[AnyArray, "N M"]:
    """Σ_d w_d (a_d − b_d)², the square expanded so that all pairs are one matrix product."""
    squares = (a**2 @ w)[:, None] + (b**2 @ w)[None, :] - 2.0 * (a * w) @ b.T
    return jnp.maximum(squares, 0.0)  # rounding can give −1e-16 where a = b
