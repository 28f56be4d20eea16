"""Fits that start at the optimum of another fit to the same records, which has seen what they leave out."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from revarb.gp.posterior import PosteriorMean
from revarb.models.fitted_rgp import FittedRGP
from revarb.runtime.numerics import AnyArray
from revarb.simulation.chain import Chain, locate_windows
from revarb.simulation.mean import advance_mean
from revarb.training.problem import Problem
from revarb.variational.bound import Layout, Rows, compute_means
from revarb.variational.parameters import Parameters
from revarb.variational.states import FreeStates

FARTHEST = 10.0  # standard deviations of the states; a run that goes farther has diverged


def start_at(problem: Problem, found: FittedRGP) -> Problem:
    """The problem with the parameters of a fit as its start, but for the states where its outputs are missing.

    The states there, and the functions that were fitted to them, would tell what is left out. The functions are
    computed again from the rows that have nothing to do with a gap, and the means of the states are simulated with
    them from the states before the gap. Interpolated means, as in a cold start, do not fit the dynamics: the first
    iterations would spoil the parameters. The variances are those of a cold start.
    """
    trained = found.trained.parameters
    states, own = trained.states, problem.start.states
    assert isinstance(states, FreeStates) and isinstance(own, FreeStates)  # networks start anew
    missing = mark_missing(problem.rows, problem.layout)
    simulated = _simulate_missing(trained, missing, problem)
    diverged = not all(np.all(np.abs(path) < FARTHEST) for path in simulated)
    fresh = own.mu if diverged else simulated
    mu = tuple(np.where(missing, new, kept) for new, kept in zip(fresh, states.mu, strict=True))
    lam = tuple(np.where(missing, new, kept) for new, kept in zip(own.raw_lam, states.raw_lam, strict=True))
    return problem._replace(start=Parameters(trained.layers, FreeStates(mu, lam), problem.start.priors))


def mark_missing(rows: Rows, layout: Layout) -> Bool[np.ndarray, "S 1"]:
    """Mark the states at whose time no output was measured."""
    if rows.measured is None:
        return np.zeros((sum(layout.lengths), 1), dtype=bool)
    measured = np.asarray(rows.measured)
    return _spread_rows(np.logical_not(np.max(measured, axis=1, keepdims=True)), layout)


def _spread_rows(values: np.ndarray, layout: Layout) -> np.ndarray:
    # From rows to states: the first states of every record have no row; zero there.
    ends = np.cumsum([length - layout.lags for length in layout.lengths])[:-1]
    return np.concatenate([np.pad(part, ((layout.lags, 0), (0, 0))) for part in np.split(values, ends)])


def _simulate_missing(
    trained: Parameters, missing: Bool[np.ndarray, "S 1"], problem: Problem
) -> list[Float[np.ndarray, "S _"]]:
    layout = problem.layout
    means = _compute_means(trained, problem.rows, missing[:, 0], layout=layout)
    chain = Chain(means[:-1], means[-1], layout.lags)
    known = np.concatenate([np.asarray(mu) for mu in trained.states.mu], axis=1)  # pyright: ignore[reportAttributeAccessIssue]
    path = _run_through_gaps(chain, known, missing, _spread_rows(np.asarray(problem.rows.u_bar), layout))
    return np.split(np.asarray(path), np.cumsum(chain.latent_dims)[:-1], axis=1)


_compute_means = jax.jit(compute_means, static_argnames="layout")


@jax.jit
def _run_through_gaps(
    chain: Chain[PosteriorMean],
    known: Float[AnyArray, "S D"],
    missing: Bool[AnyArray, "S 1"],
    u_bar: Float[AnyArray, "S Du"],
) -> Float[AnyArray, "S D"]:
    # One run over all records: known states take the place of simulated ones. The first states of a record are known,
    # and fill the windows before they are needed.
    windows = locate_windows(chain)
    newest = np.concatenate([window[:dim] for window, dim in zip(windows, chain.latent_dims, strict=True)])

    def step(state: AnyArray, now: tuple[AnyArray, AnyArray, AnyArray]) -> tuple[AnyArray, AnyArray]:
        known_now, is_missing, inputs = now
        advanced, _ = advance_mean(chain, state, inputs)
        states_now = jnp.where(is_missing, advanced[newest], known_now)
        return jnp.asarray(advanced).at[newest].set(states_now), states_now

    return jax.lax.scan(step, jnp.zeros(chain.lags * sum(chain.latent_dims)), (known, missing, u_bar))[1]
