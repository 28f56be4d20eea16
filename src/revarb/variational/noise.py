"""Student-t noise of the outputs as a scale mixture, and its term of the bound.

docs/theory/derivation.md, Eqs. 50 to 53:

    y = g(x̂) + e,   e | τ ~ N(0, σ² / τ),   τ ~ Gamma(ν/2, ν/2),   q(τ) = Gamma((ν + 1)/2, rate)

Every output of every row has its own τ. The mean of q(τ) is the weight of the row in the output layer: an outlier has
a weight near zero, and the layer treats that sample as missing.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Float

from revarb.gp.layer import inverse_softplus
from revarb.runtime.numerics import AnyArray

MIN_DEGREES = 2.5  # of freedom: at 2 a Student-t has no variance, and a band no standard deviation


class StudentNoise(eqx.Module):
    """q(τ) of all rows and outputs, and the degrees of freedom ν."""

    log_rate: Float[AnyArray, "R Dy"]
    raw_degrees: Float[AnyArray, ""]

    @property
    def degrees(self) -> Float[AnyArray, ""]:
        """Degrees of freedom ν."""
        return MIN_DEGREES + jax.nn.softplus(self.raw_degrees)

    @property
    def shape(self) -> Float[AnyArray, ""]:
        """Shape of every q(τ), which is (ν + 1)/2 at the optimum, whatever the data."""
        return 0.5 * (self.degrees + 1.0)

    @property
    def weights(self) -> Float[AnyArray, "R Dy"]:
        """E[τ] of every row and output."""
        return self.shape * jnp.exp(-self.log_rate)


def make_noise(squares: Float[AnyArray, "R Dy"], degrees: float) -> StudentNoise:
    """The optimal q(τ) for squared errors in units of σ² (Eq. 52)."""
    return StudentNoise(
        jnp.log(0.5 * (degrees + squares)), jnp.asarray(inverse_softplus(degrees - MIN_DEGREES), dtype=jnp.float64)
    )


def expected_squares(noise: StudentNoise) -> Float[AnyArray, "R Dy"]:
    """The expected squared errors, in units of σ², for which q(τ) is optimal (Eq. 52)."""
    return jnp.maximum(2.0 * jnp.exp(noise.log_rate) - noise.degrees, 0.0)


def weight_terms(noise: StudentNoise) -> Float[AnyArray, "R Dy"]:
    """½ E[log τ] − KL(q(τ) ‖ p(τ)) of every row and output (Eq. 53)."""
    prior, shape = 0.5 * noise.degrees, noise.shape
    return (
        gammaln(shape) - gammaln(prior) + prior * jnp.log(prior) + shape
        - shape * noise.log_rate - shape * prior * jnp.exp(-noise.log_rate)
    )  # fmt: skip
