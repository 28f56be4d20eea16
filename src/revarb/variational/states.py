"""q(x), the variational distribution of the latent states, and its terms of the bound.

docs/theory/derivation.md, Eqs. 7, 8, 28 and 29.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from revarb.runtime.numerics import AnyArray


class FreeStates(eqx.Module):
    """Free-form mean field: one mean and one variance per layer, sample and latent dimension (Eq. 7)."""

    mu: tuple[Float[AnyArray, "S _"], ...]
    raw_lam: tuple[Float[AnyArray, "S _"], ...]

    @property
    def lam(self) -> tuple[Float[AnyArray, "S _"], ...]:
        """Variances λ of the states."""
        return tuple(jax.nn.softplus(raw) for raw in self.raw_lam)

    def evaluate(self, u_bar: Float[AnyArray, "R Du"], lags: int, lengths: Sequence[int]) -> "FreeStates":
        """Return itself: free states do not depend on inputs, unlike those of a recognition model (networks.py)."""
        return self


class InitialPrior(eqx.Module):
    """Prior N(prior_mean, variance) of the L initial states of one layer, the same for all records (Eq. 8)."""

    prior_mean: Float[AnyArray, "L Dx"]
    raw_prior_variance: Float[AnyArray, "L Dx"]

    @property
    def variance(self) -> Float[AnyArray, "L Dx"]:
        """Prior variances of the initial states."""
        return jax.nn.softplus(self.raw_prior_variance)


def entropy(lam: Float[AnyArray, "R Dx"], weights: Float[AnyArray, " R"] | None = None) -> Float[AnyArray, ""]:
    """Entropy of independent Gaussians with variances `lam`, summed (Eq. 28); with weights, rows count by theirs."""
    logarithms = jnp.log(2.0 * jnp.pi * jnp.e * lam)
    return 0.5 * jnp.sum(logarithms if weights is None else weights[:, None] * logarithms)


def kl_to_prior(
    mu: Float[AnyArray, "K L Dx"], lam: Float[AnyArray, "K L Dx"], prior: InitialPrior
) -> Float[AnyArray, ""]:
    """KL(q(x_i) ‖ p(x_i)) of the initial states of K records, summed (Eq. 29)."""
    scaled = (lam + (mu - prior.prior_mean) ** 2) / prior.variance
    return 0.5 * jnp.sum(scaled - 1.0 + jnp.log(prior.variance) - jnp.log(lam))
