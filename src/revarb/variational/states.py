"""q(x), the variational distribution of the latent states, and its terms of the bound.

docs/theory/derivation.md, Eqs. 7, 8, 28 and 29.

The means are free, or computed by recurrent networks: a recognition model (the paper's section 4; Eqs. 40 and 41).
Instead of one free mean per step, layer h has a network g^(h) with μ_i^(h) = g^(h)(x̂_i^(h)), where x̂ holds means that
the networks computed before. The initial states stay free; the variances are free per step or shared by all steps.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from revarb.data.windows import Order, regressor_sizes, split_rows
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
