"""Particle Gibbs with ancestor sampling (Lindsten, Jordan & Schön 2014): a new path of states, given an old one.

The outputs are states plus Gaussian noise, so the proposal and the weights of the fully adapted filter are known: a
particle is chosen by p(y_t | x_{t−1}) and moved by p(x_t | x_{t−1}, y_t) (docs/theory/derivation.md, Eqs. 70 and 71).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Key

from revarb.runtime.numerics import AnyArray

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
