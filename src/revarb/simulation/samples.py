"""Sampled trajectories, each with one draw of every layer's function (docs/theory/derivation.md, Eqs. 1 to 3, 35b)."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Float, Key

from revarb.gp.pathwise import DrawnFunctions, draw_functions
from revarb.gp.posterior import Posterior
from revarb.runtime.numerics import AnyArray, cut_rows, pad_rows
from revarb.simulation.chain import Chain, StartState, locate_regressors, locate_shifted, locate_windows


def run_samples(
    chain: Chain[Posterior],
    start: StartState,
    u_bar: Float[AnyArray, "T Du"],
    key: Key[jax.Array, ""],
    count: int,
) -> tuple[Float[AnyArray, "count T Dy"], Float[AnyArray, "count T Dy"]]:
    """Sample `count` trajectories of y; return them without and with the output noise."""
    return cut_rows(_scan_samples(chain, start, pad_rows(u_bar), key, count), len(u_bar), axis=1)


@partial(jax.jit, static_argnames="count")
def _scan_samples(
    chain: Chain[Posterior],
    start: StartState,
    u_bar: Float[AnyArray, "T Du"],
    key: Key[jax.Array, ""],
    count: int,
) -> tuple[Float[AnyArray, "count T Dy"], Float[AnyArray, "count T Dy"]]:
    function_key, start_key, walk_key = jax.random.split(key, 3)
    drawn = draw_chain(chain, function_key, count)

    def step(states, now):
        step_key, inputs_now = now
        return advance_samples(drawn, states, inputs_now, step_key)

    first = jax.random.multivariate_normal(start_key, start.mean, start.cov, (count,), method="svd")
    steps = (jax.random.split(walk_key, u_bar.shape[0]), u_bar)
    f, y = jax.lax.scan(step, first, steps)[1]
    return jnp.swapaxes(f, 0, 1), jnp.swapaxes(y, 0, 1)


@partial(jax.jit, static_argnames="count")
def draw_chain(chain: Chain[Posterior], key: Key[jax.Array, ""], count: int) -> Chain[DrawnFunctions]:
    """Draw `count` functions of every layer of a chain, one per trajectory."""
    *keys, output_key = jax.random.split(key, len(chain.hidden) + 1)
    hidden = tuple(draw_functions(layer, key, count) for layer, key in zip(chain.hidden, keys, strict=True))
    output = None if chain.output is None else draw_functions(chain.output, output_key, count)
    return Chain(hidden, output, chain.lags, chain.degrees)


def advance_samples(
    drawn: Chain[DrawnFunctions], states: Float[AnyArray, "count S"], inputs_now: Float[AnyArray, " Du"],
    key: Key[jax.Array, ""],
) -> tuple[Float[AnyArray, "count S"], tuple[Float[AnyArray, "count Dy"], Float[AnyArray, "count Dy"]]]:  # fmt: skip
    """Advance sampled trajectories by one step; return their joint states, and y without and with the output noise."""
    windows = locate_windows(drawn)
    keys = jax.random.split(key, len(drawn.hidden) + 1)
    known_inputs = jnp.broadcast_to(inputs_now, (len(states), len(inputs_now)))
    values: list[tuple[AnyArray, AnyArray]] = []
    for h, (layer, inputs) in enumerate(zip(drawn.hidden, locate_regressors(drawn), strict=True)):
        x_hat = jnp.concatenate([states[:, inputs], known_inputs], axis=1) if h == 0 else states[:, inputs]
        values.append(_evaluate_noisy(layer, x_hat, keys[h], None))
        x = values[-1][1]  # the state includes the layer's noise
        states = jnp.concatenate([states, x], axis=1)[:, locate_shifted(windows, h, x.shape[1])]
    if drawn.output is None:
        return states, values[-1]
    return states, _evaluate_noisy(drawn.output, states[:, windows[-1]], keys[-1], drawn.degrees)


def _evaluate_noisy(
    functions: DrawnFunctions, x_hat: AnyArray, key: AnyArray, degrees: AnyArray | None
) -> tuple[AnyArray, AnyArray]:
    # Values of the functions without and with the layer's noise, which is drawn at every step.
    f = functions.evaluate(x_hat)
    noise = jax.random.normal(key, f.shape) if degrees is None else jax.random.t(key, degrees, f.shape)
    return f, f + jnp.sqrt(functions.sigma2) * noise
