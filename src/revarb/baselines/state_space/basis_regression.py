"""Regression of the states on a basis of sines: the function f of a reduced-rank GP state-space model.

The basis is the reduced-rank approximation of the RBF kernel (Solin & Särkkä): eigenfunctions of the Laplace operator
on a box. Weights and process noise have a matrix-normal inverse-Wishart prior (docs/theory/derivation.md, Eqs. 64 to
68).
"""

import heapq
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Float64, Key

from revarb.runtime.numerics import AnyArray

# Priors on z-scored data.
AFFINE_VARIANCE = 1e4  # of the weights of the affine part, in units of the process noise
LOG_SIGNAL_MEAN, LOG_SIGNAL_STD = 6.0, 4.0  # of the signal variance, in units of the process noise
LOG_LENGTH_MEAN, LOG_LENGTH_STD = 0.4, 0.5  # of every lengthscale: 0.5 to 4 standard deviations of the data
PROPOSAL_STD = 0.15  # of a Metropolis step of one of these logarithms; not tuned


class LaplaceBasis(eqx.Module):
    """Products of sines that vanish at the border of the box [−half_width, half_width].

    The numbers of half waves j_d along every dimension give the eigenvalue Σ_d (π j_d / 2 L_d)²
    (docs/theory/derivation.md, Eq. 64).
    """

    half_width: Float[AnyArray, " D"]
    numbers: Float[AnyArray, "n D"]
    largest: int = eqx.field(static=True)  # of the numbers

    @classmethod
    def build(cls, half_width: Float64[np.ndarray, " D"], count: int) -> "LaplaceBasis":
        """The `count` products with the smallest eigenvalues: the smoothest ones."""
        return cls.from_numbers(half_width, list_numbers(half_width, count))

    @classmethod
    def from_numbers(cls, half_width: Float64[np.ndarray, " D"], numbers: Float64[np.ndarray, "n D"]) -> "LaplaceBasis":
        """The products with these numbers of half waves."""
        return cls(half_width, numbers, int(numbers.max()))

    def evaluate(self, z: Float[AnyArray, "N D"]) -> Float[AnyArray, "N n"]:
        """Values at points inside the box."""
        every = jnp.arange(1.0, self.largest + 1.0)
        sines = jnp.sin((z / self.half_width + 1.0)[:, :, None] * (0.5 * jnp.pi * every))
        # A product with ones and zeros: ten times as fast as indices in a compiled loop over time.
        chosen = (self.numbers.T[:, None] == every[:, None]).astype(z.dtype)
        return jnp.prod(jnp.einsum("zdj,djn->dzn", sines, chosen), axis=0) / jnp.sqrt(jnp.prod(self.half_width))

    def spectral_density(self, lengthscales: Float[AnyArray, " D"]) -> Float[AnyArray, " n"]:
        """Prior variance of every weight: the spectral density of the RBF kernel with variance 1 (Eq. 65)."""
        frequencies = self.numbers * (0.5 * jnp.pi / self.half_width)
        size = jnp.prod(jnp.sqrt(2.0 * jnp.pi) * lengthscales)
        return size * jnp.exp(-0.5 * jnp.sum((frequencies * lengthscales) ** 2, axis=1))


def list_numbers(half_width: Float64[np.ndarray, " D"], count: int) -> Float64[np.ndarray, "n D"]:
    """The numbers of half waves of the `count` products with the smallest Σ_d (j_d / L_d)², smallest first."""
    first = tuple([1] * len(half_width))
    waiting: list[tuple[float, tuple[int, ...]]] = [(0.0, first)]
    known, taken = {first}, []
    while len(taken) < count:
        _, numbers = heapq.heappop(waiting)
        taken.append(numbers)
        for d in range(len(half_width)):
            more = (*numbers[:d], numbers[d] + 1, *numbers[d + 1 :])
            if more not in known:
                known.add(more)
                heapq.heappush(waiting, (float(np.sum((np.array(more) / half_width) ** 2)), more))
    return np.array(taken, dtype=np.float64)


def compute_features(
    basis: LaplaceBasis, x: Float[AnyArray, "N Dx"], u_bar: Float[AnyArray, "#N Du"] | Float[AnyArray, " Du"]
) -> Float[AnyArray, "N n"]:
    """φ = [1, h, ū, sines] at the nearest point of the box, so that f is bounded; h are the last entries of x.

    The box says how many of them f depends on: outputs in front of them have no influence on what follows.
    """
    inputs = jnp.broadcast_to(u_bar, (len(x), u_bar.shape[-1]))
    hidden = x[:, x.shape[1] + inputs.shape[1] - len(basis.half_width) :]
    z = jnp.clip(jnp.concatenate([hidden, inputs], axis=1), -basis.half_width, basis.half_width)
    return jnp.concatenate([jnp.ones((len(x), 1)), z, basis.evaluate(z)], axis=1)


class ReducedRankDynamics(eqx.Module):
    """The transitions of K particles, each with its own weights (a `Dynamics`)."""

    basis: LaplaceBasis
    weights: Float[AnyArray, "K Dx n"]
    process_root: Float[AnyArray, "K Dx Dx"]
    output_std: Float[AnyArray, " Dy"]

    def mean(self, x: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, " Du"]) -> Float[AnyArray, "K Dx"]:
        """Expected next states."""
        return jnp.einsum("kdn,kn->kd", self.weights, compute_features(self.basis, x, u_bar))

    def advance(
        self, x: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, " Du"], key: Key[jax.Array, ""]
    ) -> Float[AnyArray, "K Dx"]:
        """Sampled next states, process noise included."""
        noise = jnp.einsum("kde,ke->kd", self.process_root, jax.random.normal(key, x.shape))
        return self.mean(x, u_bar) + noise


class WeightPrior(eqx.Module):
    """A | Q ~ MN(0, Q, diag(variances)), Q ~ IW(degrees, scale): the noise is the unit of the weights."""

    variances: Float[AnyArray, " n"]
    degrees: Float[AnyArray, ""]
    scale: Float[AnyArray, "Dx Dx"]


class Statistics(NamedTuple):
    """Sums over the rows of a regression of targets x on features φ."""

    targets: Float[AnyArray, "Dx Dx"]  # Σ x xᵀ
    products: Float[AnyArray, "Dx n"]  # Σ x φᵀ
    features: Float[AnyArray, "n n"]  # Σ φ φᵀ
    rows: Float[AnyArray, ""]


class WeightPosterior(eqx.Module):
    """A | Q ~ MN(mean, Q, rootᵀ root), Q ~ IW(degrees, scale), and the evidence of the regression."""

    mean: Float[AnyArray, "Dx n"]
    root: Float[AnyArray, "n n"]
    degrees: Float[AnyArray, ""]
    scale: Float[AnyArray, "Dx Dx"]
    log_evidence: Float[AnyArray, ""]  # up to a constant that the variances do not change

    def draw(self, key: Key[jax.Array, ""]) -> tuple[Float[AnyArray, "Dx n"], Float[AnyArray, "Dx Dx"]]:
        """Draw weights A and the noise covariance Q."""
        noise_key, weight_key = jax.random.split(key)
        Q = draw_inverse_wishart(noise_key, self.degrees, self.scale)
        normal = jax.random.normal(weight_key, self.mean.shape)
        return self.mean + jnp.linalg.cholesky(Q) @ normal @ self.root, Q


def collect_statistics(
    x: Float[AnyArray, "N Dx"], features: Float[AnyArray, "N n"], counted: Float[AnyArray, " N"]
) -> Statistics:
    """Sum over the rows of which `counted` is 1; 0 leaves a row out."""
    x, features = x * counted[:, None], features * counted[:, None]
    return Statistics(x.T @ x, x.T @ features, features.T @ features, jnp.sum(counted))


def update_weights(prior: WeightPrior, statistics: Statistics) -> WeightPosterior:
    """Posterior of weights and noise, in features scaled by their prior: a rapidly falling variance does no harm."""
    xx, xf, ff, rows = statistics
    std = jnp.sqrt(prior.variances)
    B = jnp.eye(len(std)) + std[:, None] * ff * std
    C = jnp.linalg.cholesky(B)
    whitened = jax.scipy.linalg.solve_triangular(C, (xf * std).T, lower=True)  # [n Dx]
    root = jax.scipy.linalg.solve_triangular(C, jnp.diag(std), lower=True)
    degrees, scale = prior.degrees + rows, prior.scale + xx - whitened.T @ whitened
    outputs, log_det = len(xx), jnp.sum(jnp.log(jnp.diag(C)))
    log_evidence = -outputs * log_det - 0.5 * degrees * jnp.linalg.slogdet(scale)[1]
    return WeightPosterior(whitened.T @ root, root, degrees, scale, log_evidence)


def draw_inverse_wishart(
    key: Key[jax.Array, ""], degrees: Float[AnyArray, ""], scale: Float[AnyArray, "D D"]
) -> Float[AnyArray, "D D"]:
    """Draw a covariance by Bartlett's decomposition of the Wishart distribution of its inverse."""
    diagonal_key, lower_key = jax.random.split(key)
    size = len(scale)
    chi = jnp.sqrt(jax.random.chisquare(diagonal_key, degrees - jnp.arange(size)))
    T = jnp.tril(jax.random.normal(lower_key, scale.shape), -1) + jnp.diag(chi)
    factor = jax.scipy.linalg.solve_triangular(T, jnp.linalg.cholesky(scale).T, lower=True)
    return factor.T @ factor


class Hyperparameters(NamedTuple):
    """Logarithms of the signal variance, in units of the process noise, and of the lengthscales."""

    log_signal: Float[AnyArray, ""]
    log_lengths: Float[AnyArray, " D"]


def make_weight_prior(
    hyperparameters: Hyperparameters, basis: LaplaceBasis, process: Float[AnyArray, "Dx Dx"]
) -> WeightPrior:
    """The prior of the weights of all features (docs/theory/derivation.md, Eq. 66); `process` is the scale of Q's."""
    log_signal, log_lengths = hyperparameters
    affine = jnp.full(1 + len(basis.half_width), AFFINE_VARIANCE)
    sines = jnp.exp(log_signal) * basis.spectral_density(jnp.exp(log_lengths))
    return WeightPrior(jnp.concatenate([affine, sines]), jnp.asarray(len(process) + 2.0), process)


def step_hyperparameters(
    key: Key[jax.Array, ""],
    old: Hyperparameters,
    basis: LaplaceBasis,
    process: Float[AnyArray, "Dx Dx"],
    statistics: Statistics,
) -> tuple[Hyperparameters, WeightPosterior]:
    """Take a Metropolis step of each logarithm in turn, with weights and process noise integrated out (Eq. 68).

    A step of all of them at once is rarely accepted on a long record, and the process noise, which is the unit of the
    signal variance, then falls slowly.
    """
    first = jnp.append(old.log_signal, old.log_lengths)

    def log_posterior(values: Float[AnyArray, " H"]) -> Float[AnyArray, ""]:
        new = Hyperparameters(values[0], values[1:])
        return update_weights(make_weight_prior(new, basis, process), statistics).log_evidence + _log_prior(new)

    def step(now: tuple[AnyArray, AnyArray], move: tuple[AnyArray, ...]) -> tuple[tuple[AnyArray, AnyArray], None]:
        (values, value), (direction, move_key, accept_key) = now, move
        proposed = values + PROPOSAL_STD * jax.random.normal(move_key) * direction
        after = log_posterior(proposed)
        accepted = jnp.log(jax.random.uniform(accept_key)) < after - value
        return (jnp.where(accepted, proposed, values), jnp.where(accepted, after, value)), None

    keys = jax.random.split(key, (2, len(first)))
    (values, _), _ = jax.lax.scan(step, (first, log_posterior(first)), (jnp.eye(len(first)), *keys))
    new = Hyperparameters(values[0], values[1:])
    return new, update_weights(make_weight_prior(new, basis, process), statistics)


def _log_prior(hyperparameters: Hyperparameters) -> Float[AnyArray, ""]:
    signal = (hyperparameters.log_signal - LOG_SIGNAL_MEAN) / LOG_SIGNAL_STD
    lengths = (hyperparameters.log_lengths - LOG_LENGTH_MEAN) / LOG_LENGTH_STD
    return -0.5 * (signal**2 + jnp.sum(lengths**2))
