"""Fits that start at the optimum of another fit to the same records, which has seen what they leave out."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from revarb.models.fitted_rgp import FittedRGP
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, locate_windows
from revarb.simulation.mean import advance_mean
from revarb.training.problem import Problem
from revarb.variational.bound import Layout
from revarb.variational.parameters import Parameters
from revarb.variational.states import FreeStates

FARTHEST = 10.0  # standard deviations of the states; a run that goes farther has diverged


def start_at(problem: Problem, found: FittedRGP) -> Problem:
    """The problem with the parameters of a fit as its start, but for the states where its outputs are missing.

    The states there would tell what is left out. Their means are simulated from the states before the gap, which fits
    the dynamics (interpolated means, as in a cold start, spoil them first); their variances are those of a cold start.
    """
    states, own = found.trained.parameters.states, problem.start.states
    assert isinstance(states, FreeStates) and isinstance(own, FreeStates)  # networks start anew
    missing = _mark_missing(problem)
    simulated = _fill_missing(found.trained.chain, states, missing, problem)
    mu = tuple(np.where(missing, filled, kept) for filled, kept in zip(simulated, states.mu, strict=True))
    if not all(np.all(np.abs(filled) < FARTHEST) for filled in simulated):
        mu = tuple(np.where(missing, fresh, kept) for fresh, kept in zip(own.mu, states.mu, strict=True))
    lam = tuple(np.where(missing, fresh, kept) for fresh, kept in zip(own.raw_lam, states.raw_lam, strict=True))
    return problem._replace(
        start=Parameters(found.trained.parameters.layers, FreeStates(mu, lam), problem.start.priors)
    )


def _mark_missing(problem: Problem) -> Bool[np.ndarray, "S 1"]:
    if problem.rows.measured is None:
        return np.zeros((sum(problem.layout.lengths), 1), dtype=bool)
    measured = np.asarray(problem.rows.measured)
    return _spread_rows(np.logical_not(np.max(measured, axis=1, keepdims=True)), problem.layout)


def _spread_rows(values: np.ndarray, layout: Layout) -> np.ndarray:
    # From rows to states: the first states of every record have no row; zero there.
    ends = np.cumsum([length - layout.lags for length in layout.lengths])[:-1]
    return np.concatenate([np.pad(part, ((layout.lags, 0), (0, 0))) for part in np.split(values, ends)])


def _fill_missing(
    chain: Chain[Any], states: FreeStates, missing: Bool[np.ndarray, "S 1"], problem: Problem
) -> list[Float[np.ndarray, "S _"]]:
    means = np.concatenate([np.asarray(mu) for mu in states.mu], axis=1)
    filled = np.asarray(
        _run_through_gaps(chain, means, missing, _spread_rows(np.asarray(problem.rows.u_bar), problem.layout))
    )
    return np.split(filled, np.cumsum(chain.latent_dims)[:-1], axis=1)


@jax.jit
def _run_through_gaps(
    chain: Chain[Any], means: Float[AnyArray, "S D"], missing: Bool[AnyArray, "S 1"], u_bar: Float[AnyArray, "S Du"]
) -> Float[AnyArray, "S D"]:
    # One run over all records: known states take the place of simulated ones. The first states of a record are known,
    # and fill the windows before they are needed.
    windows = locate_windows(chain)
    newest = np.concatenate([window[:dim] for window, dim in zip(windows, chain.latent_dims, strict=True)])

    def step(state: AnyArray, now: tuple[AnyArray, AnyArray, AnyArray]) -> tuple[AnyArray, AnyArray]:
        known, is_missing, inputs = now
        advanced, _ = advance_mean(chain, state, inputs)
        states_now = jnp.where(is_missing, advanced[newest], known)
        return jnp.asarray(advanced).at[newest].set(states_now), states_now

    return jax.lax.scan(step, jnp.zeros(chain.lags * sum(chain.latent_dims)), (means, missing, u_bar))[1]
