"""The Markov chain of a reduced-rank GP state-space model: states, weights, noises and hyperparameters in turn.

Weights and process noise have a matrix-normal inverse-Wishart prior (docs/theory/derivation.md, Eqs. 66 to 69).
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from revarb.baselines.state_space.laplace_basis import LaplaceBasis, compute_features
from revarb.baselines.state_space.particle_gibbs import Noise, StackedRecords, sample_path
from revarb.runtime.numerics import AnyArray


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


# Priors on z-scored data.
AFFINE_VARIANCE = 1e4  # of the weights of the affine part, in units of the process noise
PROCESS_VARIANCE = 1e-2  # mean of the inverse Wishart of Q
OUTPUT_SHAPE, OUTPUT_SCALE = 1.0, 1e-2  # of the inverse gamma of R
LOG_SIGNAL_MEAN, LOG_SIGNAL_STD = 6.0, 4.0  # of the signal variance, in units of the process noise
LOG_LENGTH_MEAN, LOG_LENGTH_STD = 0.4, 0.5  # of every lengthscale: 0.5 to 4 standard deviations of the data
PROPOSAL_STD = 0.15  # of a Metropolis step of one of these logarithms; not tuned


class Hyperparameters(NamedTuple):
    """Logarithms of the signal variance, in units of the process noise, and of the lengthscales."""

    log_signal: Float[AnyArray, ""]
    log_lengths: Float[AnyArray, " D"]


class Draw(NamedTuple):
    """Weights A and noise of the model; many draws have an axis in front."""

    weights: Float[AnyArray, "*S Dx n"]
    Q: Float[AnyArray, "*S Dx Dx"]
    R: Float[AnyArray, "*S Dy"]


class ChainState(NamedTuple):
    """One sweep of the chain: the states of all rows, weights and noise, hyperparameters."""

    path: Float[AnyArray, "T Dx"]
    draw: Draw
    hyperparameters: Hyperparameters


@partial(jax.jit, static_argnames=("sweeps", "particles"))
def run_sweeps(
    state: ChainState,
    basis: LaplaceBasis,
    rows: StackedRecords,
    key: Key[jax.Array, ""],
    floor: Float[AnyArray, ""],
    sweeps: int,
    particles: int,
) -> ChainState:
    """Run several sweeps, and return the last one.

    The burn-in has a `floor`, a variance below which the process noise hardly falls, so that the states can move.
    """

    def step(state: ChainState, sweep_key: Key[jax.Array, ""]) -> tuple[ChainState, None]:
        return _sweep(state, basis, rows, sweep_key, floor, particles), None

    return jax.lax.scan(step, state, jax.random.split(key, sweeps))[0]


def make_weight_prior(
    hyperparameters: Hyperparameters, basis: LaplaceBasis, process: Float[AnyArray, "Dx Dx"]
) -> WeightPrior:
    """The prior of the weights of all features (docs/theory/derivation.md, Eq. 66); `process` is the scale of Q's."""
    log_signal, log_lengths = hyperparameters
    affine = jnp.full(1 + len(basis.half_width), AFFINE_VARIANCE)
    sines = jnp.exp(log_signal) * basis.spectral_density(jnp.exp(log_lengths))
    return WeightPrior(jnp.concatenate([affine, sines]), jnp.asarray(len(process) + 2.0), process)


def _sweep(
    state: ChainState,
    basis: LaplaceBasis,
    rows: StackedRecords,
    key: Key[jax.Array, ""],
    floor: Float[AnyArray, ""],
    particles: int,
) -> ChainState:
    keys = jax.random.split(key, 4)
    features = compute_features(basis, jnp.roll(state.path, 1, axis=0), rows.u_bar)
    statistics = collect_statistics(state.path, features, 1.0 - rows.is_initial)
    process = (PROCESS_VARIANCE + floor * statistics.rows) * jnp.eye(state.path.shape[1])
    hyperparameters, posterior = step_hyperparameters(keys[0], state.hyperparameters, basis, process, statistics)
    weights, Q = posterior.draw(keys[1])

    def mean(x: Float[AnyArray, "K Dx"], u_bar: Float[AnyArray, " Du"]) -> Float[AnyArray, "K Dx"]:
        return compute_features(basis, x, u_bar) @ weights.T

    path = sample_path(mean, Noise(Q, state.draw.R), rows, state.path, particles, keys[2])
    R = draw_output_noise(keys[3], rows.y, path)
    return ChainState(path, Draw(weights, Q, R), hyperparameters)


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


def draw_output_noise(
    key: Key[jax.Array, ""], y: Float[AnyArray, "T Dy"], path: Float[AnyArray, "T Dx"]
) -> Float[AnyArray, " Dy"]:
    """Draw the outputs' noise variances from their inverse gamma posterior, given the states (Eq. 69)."""
    errors = jnp.where(jnp.isfinite(y), y - path[:, : y.shape[1]], 0.0)
    shape = OUTPUT_SHAPE + 0.5 * jnp.sum(jnp.isfinite(y), axis=0)
    return (OUTPUT_SCALE + 0.5 * jnp.sum(errors**2, axis=0)) / jax.random.gamma(key, shape)
