"""Free simulation: a chain of trained layers run on new inputs, from its own past predictions only.

Three ways, one compiled scan each (docs/derivation.md, Eqs. 31 to 36):

- `run_moments` carries the joint Gaussian of the lag windows of all hidden layers, with its full covariance;
- `run_mean` carries means only;
- `run_samples` draws trajectories, each of which follows one draw of every layer's function.

The joint state is a vector: for each hidden layer its window [x_i, …, x_{i−L+1}], newest first. At the row `fresh`
it is set back to the start: rows before the first full window of inputs are simulated with what is known, but the
run that counts begins cold where the window is full, as in the authors' own experiments.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, Key

from revarb.collapsed import Posterior, known_factor, predict_gaussian, split_posterior
from revarb.numerics import AnyArray
from revarb.pathwise import DrawnFunctions, draw_functions


@runtime_checkable
class Regression(Protocol):
    """What a mean-only run needs of a layer. With uncertainty, only a GP (`Posterior`) will do."""

    @property
    def outputs(self) -> int:
        """Number of values it predicts."""
        ...

    def mean(self, x: Float[AnyArray, "N D"]) -> Float[AnyArray, "N Dy"]:
        """Mean prediction at known regressors."""
        ...


AnyLayer = TypeVar("AnyLayer", bound=Regression | DrawnFunctions)


class Chain(eqx.Module, Generic[AnyLayer]):
    """Trained layers, or functions drawn from them, in the order of the data: hidden ones 1 … H, then the output layer.

    Without an output layer the states of the last hidden layer are the (measured) outputs: a NARX model.
    """

    hidden: tuple[AnyLayer, ...]
    output: AnyLayer | None
    lags: int = eqx.field(static=True)

    @property
    def latent_dims(self) -> tuple[int, ...]:
        """Number of latent states of each hidden layer."""
        return tuple(layer.outputs for layer in self.hidden)

    @property
    def last(self) -> AnyLayer:
        """The layer whose values, with its noise, are the measured outputs."""
        return self.hidden[-1] if self.output is None else self.output


class Moments(NamedTuple):
    """Mean and variance of the outputs, noise included."""

    mean: Float[AnyArray, "*T Dy"]
    variance: Float[AnyArray, "*T Dy"]


class Start(eqx.Module):
    """The joint Gaussian of all windows before the first step, and the inputs before it (oldest first), z-scored."""

    mean: Float[AnyArray, " S"]
    cov: Float[AnyArray, "S S"]
    past_u: Float[AnyArray, "reach Du"]


def cold_start(latent_dims: tuple[int, ...], lags: int, reach: int, inputs: int) -> Start:
    """Zero mean, unit variance, and past inputs at their training mean (zero): nothing is known."""
    size = lags * sum(latent_dims)
    return Start(np.zeros(size), np.eye(size), np.zeros((reach, inputs)))


@jax.jit
def run_moments(
    chain: Chain[Posterior], start: Start, u_bar: Float[AnyArray, "T Du"], fresh: int | Int[AnyArray, ""]
) -> Moments:
    """Moments of the outputs, all covariances between the windows' states kept."""
    advance, observe = advance_moments(chain), observe_moments(chain)

    def step(state, now):
        factor, is_fresh = now
        state = advance(_renewed(state, Joint(start.mean, start.cov), is_fresh), factor)
        seen = observe(state)
        return state, Moments(seen.mean, jnp.diagonal(seen.cov))

    steps = (known_factor(chain.hidden[0], u_bar), _fresh_rows(u_bar, fresh))
    return jax.lax.scan(step, Joint(start.mean, start.cov), steps)[1]


class Joint(NamedTuple):
    """The joint Gaussian of all windows."""

    mean: Float[AnyArray, " S"]
    cov: Float[AnyArray, "S S"]


def advance_moments(chain: Chain[Posterior]) -> Callable[[Joint, Float[AnyArray, " M"]], Joint]:
    """One step of the joint Gaussian through all hidden layers, given the factor of the step's inputs."""
    windows, wiring = _windows(chain), _wiring(chain)
    splits = [split_posterior(layer, len(inputs)) for layer, inputs in zip(chain.hidden, wiring, strict=True)]
    certain = [jnp.ones(layer.zeta.shape[0]) for layer in chain.hidden]

    def advance(state: Joint, factor: AnyArray) -> Joint:
        mean, cov = state
        for h, (split, inputs) in enumerate(zip(splits, wiring, strict=True)):
            f = predict_gaussian(split, mean[inputs], cov[inputs][:, inputs], factor if h == 0 else certain[h])
            cross = cov[:, inputs] @ f.gain
            noisy = f.cov + split.layer.sigma2 * jnp.eye(len(f.mean))
            order = _shifted(windows, h, len(f.mean))
            mean = jnp.concatenate([mean, f.mean])[order]
            cov = jnp.block([[cov, cross], [cross.T, noisy]])[order][:, order]
        return Joint(mean, cov)

    return advance


class Seen(NamedTuple):
    """What the joint state says of y, noise included, and the covariance of the two."""

    mean: Float[AnyArray, " Dy"]
    cov: Float[AnyArray, "Dy Dy"]
    cross: Float[AnyArray, "S Dy"]


def observe_moments(chain: Chain[Posterior]) -> Callable[[Joint], Seen]:
    """From the joint state to y, by way of the last hidden layer's window."""
    window = _windows(chain)[-1]
    if chain.output is None:
        newest = window[: chain.latent_dims[-1]]
        return lambda state: Seen(state.mean[newest], state.cov[newest][:, newest], state.cov[:, newest])
    output, sigma2 = split_posterior(chain.output, len(window)), chain.output.sigma2
    certain = jnp.ones(chain.output.zeta.shape[0])

    def observe(state: Joint) -> Seen:
        g = predict_gaussian(output, state.mean[window], state.cov[window][:, window], certain)
        noisy = g.cov + sigma2 * jnp.eye(len(g.mean))
        return Seen(g.mean, noisy, state.cov[:, window] @ g.gain)

    return observe


@jax.jit
def observe_independent(layer: Posterior, mean: Float[AnyArray, "R D"], variance: Float[AnyArray, "R D"]) -> Moments:
    """Moments of y, noise included, for rows of regressors that are independent of each other."""
    split, certain = split_posterior(layer, mean.shape[1]), jnp.ones(layer.zeta.shape[0])

    def observe(row: tuple[AnyArray, AnyArray]) -> Moments:
        g = predict_gaussian(split, row[0], jnp.diag(row[1]), certain)
        return Moments(g.mean, jnp.diagonal(g.cov) + layer.sigma2)

    return jax.lax.map(observe, (mean, variance))


@jax.jit
def run_mean(
    chain: Chain, start: Start, u_bar: Float[AnyArray, "T Du"], fresh: int | Int[AnyArray, ""]
) -> Float[AnyArray, "T Dy"]:
    """Mean-only free run: every layer predicts at the mean of its regressors."""

    def step(state, now):
        inputs_now, is_fresh = now
        return mean_step(chain, _renewed(state, start.mean, is_fresh), inputs_now)

    return jax.lax.scan(step, start.mean, (u_bar, _fresh_rows(u_bar, fresh)))[1]


def mean_step(
    chain: Chain, state: Float[AnyArray, " S"], inputs_now: Float[AnyArray, " Du"]
) -> tuple[Float[AnyArray, " S"], Float[AnyArray, " Dy"]]:
    """One step of the mean-only run: the joint state after it, and y."""
    windows = _windows(chain)
    for h, (layer, inputs) in enumerate(zip(chain.hidden, _wiring(chain), strict=True)):
        x_hat = jnp.concatenate([state[inputs], inputs_now]) if h == 0 else state[inputs]
        mean = layer.mean(x_hat[None])[0]
        state = jnp.concatenate([state, mean])[_shifted(windows, h, len(mean))]
    newest = state[windows[-1]]
    return state, newest[: chain.latent_dims[-1]] if chain.output is None else chain.output.mean(newest[None])[0]


@partial(jax.jit, static_argnames="count")
def run_samples(
    chain: Chain[Posterior],
    start: Start,
    u_bar: Float[AnyArray, "T Du"],
    fresh: int | Int[AnyArray, ""],
    key: Key[jax.Array, ""],
    count: int,
) -> tuple[Float[AnyArray, "count T Dy"], Float[AnyArray, "count T Dy"]]:
    """`count` trajectories of y, without and with the noise of y itself."""
    function_key, start_key, walk_key = jax.random.split(key, 3)
    drawn = draw_chain(chain, function_key, count)

    def step(states, now):
        step_key, inputs_now, is_fresh = now
        return sample_step(drawn, _renewed(states, first, is_fresh), inputs_now, step_key)

    first = jax.random.multivariate_normal(start_key, start.mean, start.cov, (count,), method="svd")
    steps = (jax.random.split(walk_key, u_bar.shape[0]), u_bar, _fresh_rows(u_bar, fresh))
    f, y = jax.lax.scan(step, first, steps)[1]
    return jnp.swapaxes(f, 0, 1), jnp.swapaxes(y, 0, 1)


@partial(jax.jit, static_argnames="count")
def draw_chain(chain: Chain[Posterior], key: Key[jax.Array, ""], count: int) -> Chain[DrawnFunctions]:
    """`count` draws of all functions of a chain, for as many trajectories."""
    *keys, output_key = jax.random.split(key, len(chain.hidden) + 1)
    hidden = tuple(draw_functions(layer, key, count) for layer, key in zip(chain.hidden, keys, strict=True))
    output = None if chain.output is None else draw_functions(chain.output, output_key, count)
    return Chain(hidden, output, chain.lags)


def sample_step(
    drawn: Chain[DrawnFunctions], states: Float[AnyArray, "count S"], inputs_now: Float[AnyArray, " Du"],
    key: Key[jax.Array, ""],
) -> tuple[Float[AnyArray, "count S"], tuple[Float[AnyArray, "count Dy"], Float[AnyArray, "count Dy"]]]:  # fmt: skip
    """One step of sampled trajectories: their joint states after it, and y without and with its own noise."""
    windows = _windows(drawn)
    keys = jax.random.split(key, len(drawn.hidden) + 1)
    known = jnp.broadcast_to(inputs_now, (len(states), len(inputs_now)))
    values: list[tuple[AnyArray, AnyArray]] = []
    for h, (layer, inputs) in enumerate(zip(drawn.hidden, _wiring(drawn), strict=True)):
        x_hat = jnp.concatenate([states[:, inputs], known], axis=1) if h == 0 else states[:, inputs]
        values.append(_with_noise(layer, x_hat, keys[h]))
        x = values[-1][1]
        states = jnp.concatenate([states, x], axis=1)[:, _shifted(windows, h, x.shape[1])]
    return states, values[-1] if drawn.output is None else _with_noise(drawn.output, states[:, windows[-1]], keys[-1])


def _with_noise(functions: DrawnFunctions, x_hat: AnyArray, key: AnyArray) -> tuple[AnyArray, AnyArray]:
    # The functions' values, without and with the layer's noise, which is new at every step.
    f = functions.at(x_hat)
    return f, f + jnp.sqrt(functions.sigma2) * jax.random.normal(key, f.shape)


def _fresh_rows(u_bar: AnyArray, fresh: int | AnyArray) -> AnyArray:
    return jnp.arange(u_bar.shape[0]) == fresh


def _renewed(state, start, is_fresh):
    return jax.tree.map(lambda old, new: jnp.where(is_fresh, new, old), state, start)


def _windows(chain: Chain) -> list[np.ndarray]:
    # Where each hidden layer's window stands in the joint state.
    ends = np.cumsum([chain.lags * dim for dim in chain.latent_dims])
    return [np.arange(end - chain.lags * dim, end) for end, dim in zip(ends, chain.latent_dims, strict=True)]


def _wiring(chain: Chain) -> list[np.ndarray]:
    # Which entries of the joint state are regressors of each hidden layer: its own window, then the layer below's
    # (which has moved on to the current step by then).
    windows = _windows(chain)
    return [windows[0], *(np.concatenate([own, below]) for below, own in pairwise(windows))]


def _shifted(windows: list[np.ndarray], h: int, dim: int) -> np.ndarray:
    # The joint state with `dim` new values appended: layer h's window takes them in front and drops its oldest.
    size = int(windows[-1][-1]) + 1
    order = np.arange(size)
    order[windows[h]] = np.concatenate([np.arange(size, size + dim), windows[h][:-dim]])
    return order
