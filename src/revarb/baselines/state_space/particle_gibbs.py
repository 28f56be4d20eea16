"""Particle Gibbs of a reduced-rank GP state-space model: paths of states, f, noises and hyperparameters in turn.

A new path of states, given an old one, follows by ancestor sampling (Lindsten, Jordan & Schön 2014). The outputs are
states plus Gaussian noise, so the proposal and the weights of the fully adapted filter are known: a particle is chosen
by p(y_t | x_{t−1}) and moved by p(x_t | x_{t−1}, y_t) (docs/theory/derivation.md, Eqs. 70 and 71).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Key

from revarb.baselines.state_space.basis_regression import (
    LOG_LENGTH_MEAN,
    LOG_SIGNAL_MEAN,
    Hyperparameters,
    LaplaceBasis,
    collect_statistics,
    compute_features,
    step_hyperparameters,
)
from revarb.baselines.training_rows import DelayedRecords
from revarb.fitting.initial_values import fill_gaps
from revarb.runtime.numerics import AnyArray

PROCESS_VARIANCE = 1e-2  # mean of the inverse Wishart prior of Q
OUTPUT_SHAPE, OUTPUT_SCALE = 1.0, 1e-2  # of the inverse gamma prior of R
START_VARIANCE = 0.1  # of the outputs' noise, z-scored; the states start without any

MeanFunction = Callable[[Float[AnyArray, "K Dx"], Float[AnyArray, " Du"]], Float[AnyArray, "K Dx"]]


class StackedRecords(NamedTuple):
    """All records, z-scored, one after the other; each begins with a row for the state before its first sample.

    That state has the prior N(0, I) and no output.
    """

    u_bar: Float[AnyArray, "T Du"]
    y: Float[AnyArray, "T Dy"]  # NaN where missing
    is_initial: Bool[AnyArray, " T"]


class Noise(NamedTuple):
    """Covariance of the process noise and variances of the outputs' noise."""

    Q: Float[AnyArray, "Dx Dx"]
    R: Float[AnyArray, " Dy"]


class _Step(NamedTuple):
    """What one step of the filter needs; with all rows in front, what all of them need."""

    u_bar: AnyArray
    y: AnyArray
    is_initial: AnyArray
    precision: AnyArray  # of y_t given x_{t−1}; zero where missing
    gain: AnyArray
    reference: AnyArray
    uniforms: AnyArray  # they choose the ancestors
    states: AnyArray  # standard normals of the process noise
    outputs: AnyArray  # and of the outputs' noise


def stack_records(
    u_bars: Sequence[Float64[np.ndarray, "_ Du"]], ys: Sequence[Float64[np.ndarray, "_ Dy"]]
) -> StackedRecords:
    """Stack the records, with an initial row in front of each."""
    u_bar = [np.pad(each, ((1, 0), (0, 0))) for each in u_bars]
    y = [np.pad(each, ((1, 0), (0, 0)), constant_values=np.nan) for each in ys]
    return StackedRecords(
        np.concatenate(u_bar), np.concatenate(y), np.concatenate([np.arange(len(each)) == 0 for each in y])
    )


def sample_path(
    mean: MeanFunction,
    noise: Noise,
    rows: StackedRecords,
    reference: Float[AnyArray, "T Dx"],
    particles: int,
    key: Key[jax.Array, ""],
) -> Float[AnyArray, "T Dx"]:
    """Sample a path of states, given an old one, by a Markov kernel that leaves their posterior unchanged."""
    filter_key, last_key = jax.random.split(key)
    steps = _prepare_steps(noise, rows, reference, particles, filter_key)
    factor, output_std = jnp.linalg.cholesky(noise.Q), jnp.sqrt(noise.R)
    identity = jnp.eye(len(factor))
    whitening = jax.scipy.linalg.solve_triangular(factor, identity, lower=True)

    def step(x: AnyArray, now: _Step) -> tuple[AnyArray, tuple[AnyArray, AnyArray]]:
        expected = jnp.where(now.is_initial, 0.0, mean(x, now.u_bar))
        ancestors = _choose_ancestors(expected, jnp.where(now.is_initial, identity, whitening), now)
        moved = expected[ancestors[:-1]] + now.states @ jnp.where(now.is_initial, identity, factor).T
        errors = _subtract(now.y, moved) - now.outputs * output_std
        x = jnp.concatenate([moved + errors @ now.gain.T, now.reference[None]])
        return x, (x, ancestors)

    _, (x, ancestors) = jax.lax.scan(step, jnp.zeros((particles, len(factor))), steps)
    return _trace_back(x, ancestors, jax.random.randint(last_key, (), 0, particles))


def _prepare_steps(
    noise: Noise, rows: StackedRecords, reference: Float[AnyArray, "T Dx"], particles: int, key: Key[jax.Array, ""]
) -> _Step:
    Q, R = noise
    length, outputs = rows.y.shape
    measured = jnp.isfinite(rows.y)
    both = measured[:, :, None] & measured[:, None, :]
    S = Q[:outputs, :outputs] + jnp.diag(R)
    precision = jnp.where(both, jnp.linalg.inv(jnp.where(both, S, jnp.eye(outputs))), 0.0)
    keys = jax.random.split(key, 3)
    return _Step(
        *rows,
        precision=precision,
        gain=Q[:, :outputs] @ precision,
        reference=reference,
        uniforms=jax.random.uniform(keys[0], (length, particles)),
        states=jax.random.normal(keys[1], (length, particles - 1, len(Q))),
        outputs=jax.random.normal(keys[2], (length, particles - 1, outputs)),
    )


def _choose_ancestors(
    expected: Float[AnyArray, "K Dx"], whitening: Float[AnyArray, "Dx Dx"], now: _Step
) -> Int[AnyArray, " K"]:
    # Free particles by p(y_t | x_{t−1}), the reference by p(its state | x_{t−1}).
    errors = _subtract(now.y, expected)
    by_output = -0.5 * jnp.sum((errors @ now.precision) * errors, axis=1)
    by_reference = -0.5 * jnp.sum(((now.reference - expected) @ whitening.T) ** 2, axis=1)
    return jnp.append(_pick(by_output, now.uniforms[:-1]), _pick(by_reference, now.uniforms[-1:]))


def _pick(log_weights: Float[AnyArray, " K"], uniforms: Float[AnyArray, " P"]) -> Int[AnyArray, " P"]:
    ends = jnp.cumsum(jax.nn.softmax(log_weights))
    return jnp.sum(uniforms[:, None] * ends[-1] >= ends, axis=1).clip(max=len(log_weights) - 1)


def _subtract(y: Float[AnyArray, " Dy"], x: Float[AnyArray, "K Dx"]) -> Float[AnyArray, "K Dy"]:
    # A missing output has no error.
    return jnp.where(jnp.isfinite(y), y, 0.0) - jnp.where(jnp.isfinite(y), x[:, : len(y)], 0.0)


def _trace_back(
    x: Float[AnyArray, "T K Dx"], ancestors: Int[AnyArray, "T K"], last: Int[AnyArray, ""]
) -> Float[AnyArray, "T Dx"]:
    def step(particle: AnyArray, now: tuple[AnyArray, AnyArray]) -> tuple[AnyArray, AnyArray]:
        states, parents = now
        return parents[particle], states[particle]

    return jax.lax.scan(step, last, (x, ancestors), reverse=True)[1]


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

    def sweep(state: ChainState, sweep_key: Key[jax.Array, ""]) -> tuple[ChainState, None]:
        keys = jax.random.split(sweep_key, 4)
        features = compute_features(basis, jnp.roll(state.path, 1, axis=0), rows.u_bar)
        statistics = collect_statistics(state.path, features, 1.0 - rows.is_initial)
        process = (PROCESS_VARIANCE + floor * statistics.rows) * jnp.eye(state.path.shape[1])
        hyperparameters, posterior = step_hyperparameters(keys[0], state.hyperparameters, basis, process, statistics)
        weights, Q = posterior.draw(keys[1])
        noise = Noise(Q, state.draw.R)
        path = sample_path(
            lambda x, u_bar: compute_features(basis, x, u_bar) @ weights.T, noise, rows, state.path, particles, keys[2]
        )
        R = draw_output_noise(keys[3], rows.y, path)
        return ChainState(path, Draw(weights, Q, R), hyperparameters), None

    return jax.lax.scan(sweep, state, jax.random.split(key, sweeps))[0]


def draw_output_noise(
    key: Key[jax.Array, ""], y: Float[AnyArray, "T Dy"], path: Float[AnyArray, "T Dx"]
) -> Float[AnyArray, " Dy"]:
    """Draw the outputs' noise variances from their inverse gamma posterior, given the states (Eq. 69)."""
    errors = jnp.where(jnp.isfinite(y), y - path[:, : y.shape[1]], 0.0)
    shape = OUTPUT_SHAPE + 0.5 * jnp.sum(jnp.isfinite(y), axis=0)
    return (OUTPUT_SCALE + 0.5 * jnp.sum(errors**2, axis=0)) / jax.random.gamma(key, shape)


def start_path(data: DelayedRecords, states: int) -> Float64[np.ndarray, "T Dx"]:
    """The outputs, then the hidden states; the state before a record is that of its first row."""
    ys = [fill_gaps(y) for y in data.ys]
    blocks = [np.hstack(pair) for pair in zip(ys, compute_observer_states(data.u_bars, ys, states), strict=True)]
    return np.concatenate([np.pad(block, ((1, 0), (0, 0)), mode="edge") for block in blocks])


def start_chain(path: Float64[np.ndarray, "T Dx"], outputs: int, basis: LaplaceBasis) -> ChainState:
    """The chain before its first sweep, which begins with weights and process noise: theirs do not count."""
    states, dimensions = path.shape[1], len(basis.half_width)
    weights = np.zeros((states, 1 + dimensions + len(basis.numbers)))
    hyperparameters = Hyperparameters(np.array(LOG_SIGNAL_MEAN), np.full(dimensions, LOG_LENGTH_MEAN))
    return ChainState(path, Draw(weights, np.eye(states), np.full(outputs, START_VARIANCE)), hyperparameters)


def compute_observer_states(
    u_bars: Sequence[Float64[np.ndarray, "_ Du"]], ys: Sequence[Float64[np.ndarray, "_ Dy"]], states: int
) -> list[Float64[np.ndarray, "_ Dx"]]:
    """Compute the states of every record from its z-scored inputs and outputs, which have no gaps.

    The ARX model y_t = Σ_k A_k y_{t−k} + B_k ū_{t−k+1} has as many lags as the states need. Its first states are the
    outputs; the others, x^k_t = A_k y_{t−1} + B_k ū_t + x^{k+1}_{t−1}, are known from the past, and are scaled to unit
    variance (docs/theory/derivation.md, Eq. 72).
    """
    lags = -(-states // ys[0].shape[1])
    A, B = _fit_arx(u_bars, ys, lags)
    blocks = [_run_observer(u_bar, y, A, B)[:, :states] for u_bar, y in zip(u_bars, ys, strict=True)]
    scale = np.concatenate(blocks).std(axis=0)
    scale[: ys[0].shape[1]] = 1.0
    return [block / np.where(scale > 0.0, scale, 1.0) for block in blocks]


def _fit_arx(
    u_bars: Sequence[Float64[np.ndarray, "_ Du"]], ys: Sequence[Float64[np.ndarray, "_ Dy"]], lags: int
) -> tuple[Float64[np.ndarray, "L Dy Dy"], Float64[np.ndarray, "L Du Dy"]]:
    # Least squares; values before a record are at their mean, zero.
    inputs, outputs = u_bars[0].shape[1], ys[0].shape[1]
    past_y = [np.hstack([_delay(y, age) for age in range(1, lags + 1)]) for y in ys]
    past_u = [np.hstack([_delay(u_bar, age) for age in range(lags)]) for u_bar in u_bars]
    design = np.hstack([np.concatenate(past_y), np.concatenate(past_u)])
    solution = np.linalg.lstsq(design, np.concatenate(ys))[0]
    own = lags * outputs
    return solution[:own].reshape(lags, outputs, outputs), solution[own:].reshape(lags, inputs, outputs)


def _run_observer(
    u_bar: Float64[np.ndarray, "N Du"],
    y: Float64[np.ndarray, "N Dy"],
    A: Float64[np.ndarray, "L Dy Dy"],
    B: Float64[np.ndarray, "L Du Dy"],
) -> Float64[np.ndarray, "N Dx"]:
    x, blocks = np.zeros_like(y), []
    for own, drive in zip(A[:0:-1], B[:0:-1], strict=True):  # from the last lag to the second
        x = _delay(y, 1) @ own + u_bar @ drive + _delay(x, 1)
        blocks.append(x)
    return np.hstack([y, *reversed(blocks)])


def _delay(values: Float64[np.ndarray, "N D"], age: int) -> Float64[np.ndarray, "N D"]:
    return np.pad(values, ((age, 0), (0, 0)))[: len(values)]
