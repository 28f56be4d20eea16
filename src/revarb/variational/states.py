"""q(x) and q(τ), the variational distributions of latent states and of Student-t noise, and their terms of the bound.

docs/theory/derivation.md, Eqs. 7, 8, 28 and 29, and 50 to 53.

The means of the states are free, or computed by recurrent networks: a recognition model (the paper's section 4; Eqs. 40
and 41). Instead of one free mean per step, layer h has a network g^(h) with μ_i^(h) = g^(h)(x̂_i^(h)), where x̂ holds
means that the networks computed before. The initial states stay free; the variances are free per step or shared by all
steps.

Student-t noise is a scale mixture, in which every output of every row has its own τ:

    y = g(x̂) + e,   e | τ ~ N(0, σ² / τ),   τ ~ Gamma(ν/2, ν/2),   q(τ) = Gamma((ν + 1)/2, rate)

The mean of q(τ) is the weight of the row in the output layer: an outlier has a weight near zero, and the layer treats
that sample as missing.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Float

from revarb.data.windows import Order, regressor_sizes, split_rows
from revarb.gp.layer import inverse_softplus
from revarb.runtime.numerics import AnyArray

MIN_DEGREES = 2.5  # of freedom: at 2 a Student-t has no variance, and a band no standard deviation


class FreeStates(eqx.Module):
    """Free-form mean field: one mean and one variance per layer, sample and latent dimension (Eq. 7)."""

    mu: tuple[Float[AnyArray, "S _"], ...]
    raw_lam: tuple[Float[AnyArray, "S _"], ...]

    @property
    def lam(self) -> tuple[Float[AnyArray, "S _"], ...]:
        """Variances λ of the states."""
        return tuple(jax.nn.softplus(raw) for raw in self.raw_lam)

    def evaluate(self, u_bar: Float[AnyArray, "R Du"], lags: int, lengths: Sequence[int]) -> "FreeStates":
        """Return itself: free states do not depend on inputs, unlike those of a recognition model."""
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


class Network(eqx.Module):
    """A multilayer perceptron: tanh layers and a linear output layer (Eq. 41)."""

    weights: tuple[Float[AnyArray, "_ _"], ...]
    biases: tuple[Float[AnyArray, " _"], ...]

    def __call__(self, x: Float[AnyArray, "K D"]) -> Float[AnyArray, "K Dx"]:
        """Evaluate the network at every row of `x`."""
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = jnp.tanh(x @ weight + bias)
        return x @ self.weights[-1] + self.biases[-1]


class RecognisedStates(eqx.Module):
    """q(x) whose means are computed by networks from free initial states."""

    networks: tuple[Network, ...]
    initial: tuple[Float[AnyArray, "K L _"], ...]
    raw_lam: tuple[Float[AnyArray, "V _"], ...]  # one row per state, or one row for all states

    def evaluate(self, u_bar: Float[AnyArray, "R Du"], lags: int, lengths: Sequence[int]) -> FreeStates:
        """Compute the mean and the variance of every state of every record."""
        mu = run_networks(self.networks, self.initial, u_bar, lags, lengths)
        return FreeStates(mu, tuple(jnp.broadcast_to(raw, m.shape) for raw, m in zip(self.raw_lam, mu, strict=True)))


def run_networks(
    networks: Sequence[Network],
    initial: Sequence[Float[AnyArray, "K L _"]],
    u_bar: Float[AnyArray, "R Du"],
    lags: int,
    lengths: Sequence[int],
) -> tuple[Float[AnyArray, "S _"], ...]:
    """Compute the latent means of all layers (Eq. 40) in one scan over time.

    The records are run in parallel; short ones are padded, and the padding is cut off again.
    """
    rows = [length - lags for length in lengths]
    pieces = split_rows(u_bar, lags, lengths)
    padded = jnp.stack([jnp.pad(piece, ((0, max(rows) - len(piece)), (0, 0))) for piece in pieces], axis=1)

    def step(windows, inputs):
        below, moved, states = inputs, [], []
        for network, window in zip(networks, windows, strict=True):
            state = network(jnp.concatenate([window, below], axis=1))
            below = jnp.concatenate([state, window[:, : -state.shape[1]]], axis=1)
            moved.append(below)
            states.append(state)
        return tuple(moved), tuple(states)

    newest_first = tuple(jnp.reshape(states[:, ::-1], (len(lengths), -1)) for states in initial)
    paths = jax.lax.scan(step, newest_first, padded)[1]
    return tuple(
        jnp.concatenate([part for k, count in enumerate(rows) for part in (start[k], path[:count, k])])
        for start, path in zip(initial, paths, strict=True)
    )


def draw_networks(
    hidden: Sequence[int], order: Order, latent_dims: Sequence[int], inputs: int, rng: np.random.Generator
) -> tuple[Network, ...]:
    """Draw networks with `hidden` units, normal weights of variance 1 / inputs and zero biases."""

    def draw(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape) / np.sqrt(shape[0]) if len(shape) == 2 else np.zeros(shape)

    return build_networks(hidden, order, latent_dims, inputs, draw)


def build_networks(
    hidden: Sequence[int], order: Order, latent_dims: Sequence[int], inputs: int, array: Callable[..., np.ndarray]
) -> tuple[Network, ...]:
    """Build the networks of all hidden layers from arrays made by `array(*shape)`."""
    sizes = regressor_sizes(order, latent_dims, inputs)[:-1]
    widths = [(size, *hidden, dim) for size, dim in zip(sizes, latent_dims, strict=True)]
    return tuple(
        Network(tuple(array(a, b) for a, b in pairwise(units)), tuple(array(count) for count in units[1:]))
        for units in widths
    )


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
