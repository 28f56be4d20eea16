"""What measured outputs say about the latent states: the joint Gaussian of the windows, conditioned step by step.

docs/derivation.md, Eqs. 43 and 44. After every step of the free run the joint Gaussian of states and output is
conditioned on the measured output; what is missing (NaN) is not conditioned on. So the states behind a record are
inferred, with their covariance, and predictions can set out from any of its samples.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from revarb.gp.posterior import Posterior, known_factor
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, StartState
from revarb.simulation.moments import JointState, Moments, OutputMoments, advance_moments, observe_moments, run_moments


@jax.jit
def filter_states(
    chain: Chain[Posterior], start: StartState, u_bar: Float[AnyArray, "T Du"], y: Float[AnyArray, "T Dy"]
) -> JointState:
    """The joint state after the last row of a record, given its outputs."""
    advance, observe = advance_moments(chain), observe_moments(chain)

    def step(state, now):
        factor, measured = now
        state = advance(state, factor)
        return update(state, observe(state), measured), None

    rows = (known_factor(chain.hidden[0], u_bar), y)
    return jax.lax.scan(step, JointState(start.mean, start.cov), rows)[0]


@partial(jax.jit, static_argnames="horizon")
def predict_ahead(
    fitted: Chain[Posterior],
    calibrated: Chain[Posterior],
    start: StartState,
    u_bar: Float[AnyArray, "T Du"],
    y: Float[AnyArray, "T Dy"],
    reset_row: int | Int[AnyArray, ""],
    horizon: int,
) -> Moments:
    """Every row predicted from the outputs up to `horizon` rows before it; the first ones are a run from the start.

    The states are inferred by the chain as it was fitted, and run ahead by the calibrated one.
    """
    advance, observe = advance_moments(fitted), observe_moments(fitted)
    go_on, look = advance_moments(calibrated), observe_moments(calibrated)

    def ahead(state, factor):
        state = go_on(state, factor)
        seen = look(state)
        return state, Moments(seen.mean, jnp.diagonal(seen.cov))

    def step(state, row):
        state = advance(state, factors[row])
        state = update(state, observe(state), y[row])
        coming = jax.lax.dynamic_slice_in_dim(factors, row + 1, horizon)
        return state, jax.tree.map(lambda values: values[-1], jax.lax.scan(ahead, state, coming)[1])

    y, factors = jnp.asarray(y), known_factor(fitted.hidden[0], u_bar)
    first = run_moments(calibrated, start, u_bar[:horizon], reset_row)
    later = jax.lax.scan(step, JointState(start.mean, start.cov), jnp.arange(y.shape[0] - horizon))[1]
    return jax.tree.map(lambda one, other: jnp.concatenate([one, other]), first, later)


def update(state: JointState, seen: OutputMoments, measured: Float[AnyArray, " Dy"]) -> JointState:
    """The joint state once y is known, as far as it was measured (Eq. 43)."""
    known = ~jnp.isnan(measured)
    error = jnp.where(known, measured - seen.mean, 0.0)
    # An output that was not measured has no covariance with anything: the solve then leaves it alone.
    cross = jnp.where(known, seen.cross, 0.0)
    cov = jnp.where(known[:, None] & known[None, :], seen.cov, 0.0) + jnp.diag(jnp.where(known, 0.0, 1.0))
    gain = jnp.linalg.solve(cov, cross.T).T
    left = state.cov - gain @ cross.T
    return JointState(state.mean + gain @ error, 0.5 * (left + left.T))
