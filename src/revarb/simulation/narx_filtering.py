"""Filtering and prediction of NARX models: their states are the outputs (docs/theory/derivation.md, Eqs. 43 and 44a).

A measured output is known exactly; where one is missing (NaN) the prediction stays, with its uncertainty, and what is
measured later corrects it. That of a GP-NARX are its propagated moments (Eq. 39). A model with a mean only has a band
by the number of steps instead; how the errors of an older output go with those of a newer one follows from its slopes.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from revarb.gp.posterior import KnownPart, Posterior, compute_known_part, predict_certain
from revarb.runtime.numerics import AnyArray, pad_rows
from revarb.simulation.chain import Chain, StartState, locate_shifted, locate_windows
from revarb.simulation.extrapolation import (
    Extrapolation,
    KnownRange,
    advance_apart,
    begin_apart,
    correct_apart,
    scan_extrapolation,
)
from revarb.simulation.filtering import update
from revarb.simulation.mean import advance_mean, scan_mean
from revarb.simulation.moments import JointState, Moments, OutputMoments, advance_moments, observe_moments, scan_moments


class NarxState(NamedTuple):
    """The window of a NARX model with a mean only, while outputs are measured.

    `cov` is what was not known of it at the last measured output, carried on by the model; `errors` is the covariance
    of the errors of the model since then: that of the newest outputs is the band. `age` is the number of steps since
    then; while nothing was measured the state is `cold`, and the steps are those since the start.
    """

    mean: Float[AnyArray, " S"]
    cov: Float[AnyArray, "S S"]
    errors: Float[AnyArray, "S S"]
    age: int | Int[AnyArray, ""]
    cold: bool | Bool[AnyArray, ""]


def begin_narx(start: StartState, age: int = 0, cold: bool = True) -> NarxState:
    """The state before the first step."""
    cov = jnp.asarray(start.cov)
    return NarxState(jnp.asarray(start.mean), cov, jnp.zeros_like(cov), jnp.asarray(age), jnp.asarray(cold))


def advance_narx(
    chain: Chain, variances: Float[AnyArray, "K Dy"], state: NarxState, inputs_now: Float[AnyArray, " Du"]
) -> NarxState:
    """Advance by one step.

    `variances` is the band by the number of steps since a measured output, and then that of a cold run.
    """
    mean, _ = advance_mean(chain, state.mean, inputs_now)
    known = (state.cov == 0.0).all() & (state.errors == 0.0).all()

    def carry():
        slopes = jax.jacfwd(lambda before: advance_mean(chain, before, inputs_now)[0])(state.mean)
        return slopes @ state.cov @ slopes.T, slopes @ state.errors @ slopes.T

    cov, errors = jax.lax.cond(known, lambda: (state.cov, state.errors), carry)
    # Those of the newest outputs are as wide as the band; how they go with older ones follows from the model.
    rows, outputs = variances.shape
    band = variances[jnp.where(state.cold, rows, jnp.minimum(state.age + 1, rows - 1)) - 1]
    errors += jnp.diag(jnp.zeros(len(mean)).at[:outputs].set(variances[0]))
    scale = jnp.ones(len(mean)).at[:outputs].set(jnp.sqrt(band / jnp.diagonal(errors)[:outputs]))
    return NarxState(mean, cov, scale[:, None] * errors * scale, state.age + 1, state.cold)


def correct_narx(state: NarxState, y: Float[AnyArray, " Dy"]) -> NarxState:
    """Condition the window on the measured outputs of its newest row, which are known exactly (Eq. 43)."""
    cov, outputs = state.cov + state.errors, len(y)
    newest = OutputMoments(state.mean[:outputs], cov[:outputs, :outputs], cov[:, :outputs])
    measured = _condition(JointState(state.mean, cov), newest, y)
    corrected = NarxState(*measured, jnp.zeros_like(cov), jnp.zeros_like(state.age), jnp.zeros_like(state.cold))
    return jax.tree.map(lambda one, other: jnp.where(jnp.isnan(y).all(), one, other), state, corrected)


def filter_narx(
    chain: Chain,
    start: StartState,
    u_bar: Float[AnyArray, "T Du"],
    y: Float[AnyArray, "T Dy"],
    variances: Float[AnyArray, "K Dy"],
) -> JointState:
    """Infer the state after the last row of a record; what was measured is known exactly."""
    state = _filter_rows(chain, start, pad_rows(u_bar), pad_rows(y), variances, len(y))
    return JointState(state.mean, state.cov)


@jax.jit
def _filter_rows(
    chain: Chain,
    start: StartState,
    u_bar: Float[AnyArray, "T Du"],
    y: Float[AnyArray, "T Dy"],
    variances: Float[AnyArray, "K Dy"],
    count: int | Int[AnyArray, ""],
) -> NarxState:
    # The first `count` rows.
    def step(row, state):
        return correct_narx(advance_narx(chain, variances, state, jnp.asarray(u_bar)[row]), jnp.asarray(y)[row])

    return jax.lax.fori_loop(0, count, step, begin_narx(start))


@partial(jax.jit, static_argnames="horizon")
def predict_narx(
    chain: Chain,
    start: StartState,
    u_bar: Float[AnyArray, "T Du"],
    y: Float[AnyArray, "T Dy"],
    horizon: int,
    known: KnownRange,
    variances: Float[AnyArray, "K Dy"],
) -> tuple[Moments, Extrapolation]:
    """Predict every row from the outputs up to `horizon` rows before it; the first `horizon` rows are a free run.

    The variance is that of what is not known of the windows, without the errors of the model. Beside it is how far the
    means extrapolate.
    """

    def filter_step(states, row):
        state, apart = states
        state = correct_narx(advance_narx(chain, variances, state, inputs[row]), outputs[row])
        apart, _ = advance_apart(chain, apart, inputs[row], known)
        following = jax.lax.dynamic_slice_in_dim(inputs, row + 1, horizon)
        spread = jax.lax.cond((state.cov == 0.0).all(), lambda *_: nothing, carry_on, state, following)
        apart = correct_apart(apart, state.mean, outputs[row])
        return (state, apart), (apart, spread)

    def carry_on(state, following):
        later = jax.lax.scan(lambda state, now: (advance_narx(chain, variances, state, now), None), state, following)[0]
        return jnp.diagonal(later.cov)[: len(nothing)]

    def predict_step(k, now):
        following = jax.lax.dynamic_slice_in_dim(inputs, k + 1, rows)
        return jax.vmap(advance_apart, in_axes=(None, 0, 0, None))(chain, now[0], following, known)

    inputs, outputs, rows = jnp.asarray(u_bar), jnp.asarray(y), y.shape[0] - horizon
    nothing = jnp.zeros(y.shape[1])
    first = scan_mean(chain, start, inputs[:horizon])
    beyond = scan_extrapolation(chain, begin_apart(start.mean), inputs[:horizon], known)
    begin = begin_narx(start), begin_apart(start.mean)
    filtered, spread = jax.lax.scan(filter_step, begin, jnp.arange(rows))[1]
    # All rows advance together; the newest outputs are the first entries of a state.
    begin = filtered, Extrapolation(jnp.zeros((rows, y.shape[1])), jnp.zeros(rows))
    apart, later = jax.lax.fori_loop(0, horizon, predict_step, begin)
    found = jax.tree.map(lambda one, other: jnp.concatenate([one, other]), beyond, later)
    return Moments(jnp.concatenate([first, apart[:, 0, : y.shape[1]]]), spread), found


@partial(jax.jit, static_argnames="most")
def predict_horizons(
    chain: Chain,
    start: StartState,
    u_bar: Float[AnyArray, "T Du"],
    y: Float[AnyArray, "T Dy"],
    most: int,
    variances: Float[AnyArray, "K Dy"],
) -> Float[AnyArray, "most T Dy"]:
    """The means of `predict_narx` for all horizons from 1 to `most`, by one program."""

    def step(state, row):
        state = correct_narx(advance_narx(chain, variances, state, inputs[row]), outputs[row])
        return state, run(state.mean, jax.lax.dynamic_slice_in_dim(inputs, row + 1, most))

    def run(mean, u_bar):
        return jax.lax.scan(lambda state, now: advance_mean(chain, state, now), mean, u_bar)[1]

    inputs, outputs = jnp.pad(u_bar, ((0, most), (0, 0))), jnp.asarray(y)
    free = run(start.mean, inputs[: len(outputs)])
    _, ahead = jax.lax.scan(step, begin_narx(start), jnp.arange(len(outputs)))
    # Row k of `ahead` has the predictions of rows k + 1, k + 2, …
    later = [jnp.concatenate([free[:steps], ahead[:, steps - 1]])[: len(free)] for steps in range(1, most + 1)]
    return jnp.stack(later)


StepInputs = tuple[Float[AnyArray, " Du"], KnownPart]  # the known regressors of a step, and what they contribute


@partial(jax.jit, static_argnames="horizon")
def predict_gp_narx(
    chain: Chain[Posterior],
    start: StartState,
    u_bar: Float[AnyArray, "T Du"],
    y: Float[AnyArray, "T Dy"],
    horizon: int,
) -> Moments:
    """Predict every row from the outputs up to `horizon` rows before it; the first `horizon` rows are a free run."""
    advance, observe = _make_advance(chain), observe_moments(chain)

    def step(state, row):
        state = advance(state, jax.tree.map(lambda values: values[row], inputs))
        state = _condition(state, observe(state), y[row])
        following = jax.tree.map(lambda values: jax.lax.dynamic_slice_in_dim(values, row + 1, horizon), inputs)
        output = observe(jax.lax.scan(lambda state, now: (advance(state, now), None), state, following)[0])
        return state, Moments(output.mean, jnp.diagonal(output.cov))

    y, inputs = jnp.asarray(y), (jnp.asarray(u_bar), compute_known_part(chain.hidden[0], u_bar))
    _, first = scan_moments(chain, start, compute_known_part(chain.hidden[0], u_bar[:horizon]))
    later = jax.lax.scan(step, JointState(start.mean, start.cov), jnp.arange(y.shape[0] - horizon))[1]
    return jax.tree.map(lambda one, other: jnp.concatenate([one, other]), first, later)


def _make_advance(chain: Chain[Posterior]) -> Callable[[JointState, StepInputs], JointState]:
    # A window of which all outputs are measured needs no psi statistics, which take a thousand times as long with a
    # thousand training rows.
    [layer] = chain.hidden
    outputs, advance_uncertain = layer.outputs, advance_moments(chain)
    order = locate_shifted(locate_windows(chain), 0, outputs)

    def advance_certain(state: JointState, now: StepInputs) -> JointState:
        mean, variance = predict_certain(layer, jnp.concatenate([state.mean, now[0]])[None])
        noisy = jnp.diag(jnp.broadcast_to(variance[0], (outputs,)) + layer.sigma2)
        cov = jnp.zeros_like(state.cov).at[:outputs, :outputs].set(noisy)
        return JointState(jnp.concatenate([state.mean, mean[0]])[order], cov)

    def advance(state: JointState, now: StepInputs) -> JointState:
        return jax.lax.cond(
            jnp.any(state.cov != 0.0), lambda: advance_uncertain(state, now[1]), lambda: advance_certain(state, now)
        )

    return advance


def _condition(state: JointState, predicted: OutputMoments, y: Float[AnyArray, " Dy"]) -> JointState:
    # Eq. 43. The newest outputs are the first entries of the state. Measured ones become exact; rounding must not leave
    # a covariance there.
    state = update(state, predicted, y)
    newest = jnp.concatenate([y, jnp.full(len(state.mean) - len(y), jnp.nan)])
    exact = ~jnp.isnan(newest)
    mean = jnp.where(exact, newest, state.mean)
    return JointState(mean, jnp.where(exact[:, None] | exact[None, :], 0.0, state.cov))
