"""REVARB: the lower bound of log p(y) as a sum over layers (docs/derivation.md, Eq. 30)."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from revarb.data.windows import initial_states, later_states, regressors
from revarb.gp.collapsed import collapsed_bound
from revarb.gp.layer import Gaussians, Layer, Targets
from revarb.gp.posterior import Posterior, compute_posterior, join_output_groups
from revarb.runtime.numerics import AnyArray
from revarb.variational.parameters import Parameters
from revarb.variational.states import FreeStates, entropy, kl_to_prior


class Rows(NamedTuple):
    """The measured side of the training rows, z-scored. What is missing of y is zero, and not `measured`."""

    u_bar: Float[AnyArray, "R Du"]
    y: Float[AnyArray, "R Dy"]
    measured: Bool[AnyArray, "R G"] | None = (
        None  # by groups of outputs (`Layout.groups`); None where nothing is missing
    )


class Layout(NamedTuple):
    """What is fixed before compilation: the state lag, each record's number of states, and the jitter.

    `groups` has the columns of outputs that were measured at the same rows; without it all were.
    """

    lags: int
    lengths: tuple[int, ...]
    jitter: float
    groups: tuple[tuple[int, ...], ...] | None = None


def revarb_bound(parameters: Parameters, rows: Rows, layout: Layout) -> Float[AnyArray, ""]:
    """Σ layers + Σ entropies of the later states − Σ KL of the initial states."""
    bound = jnp.zeros(())
    states = parameters.states.along(rows.u_bar, layout.lags, layout.lengths)
    for layer, x_hat, targets in layer_problems(parameters.layers, states, rows, layout):
        bound += collapsed_bound(layer, x_hat, targets, layout.jitter)
    for mu, lam, prior in zip(states.mu, states.lam, parameters.priors, strict=True):
        bound += entropy(later_states(lam, layout.lags, layout.lengths))
        bound -= kl_to_prior(
            initial_states(mu, layout.lags, layout.lengths), initial_states(lam, layout.lags, layout.lengths), prior
        )
    return bound


def layer_posteriors(parameters: Parameters, rows: Rows, layout: Layout) -> tuple[Posterior, ...]:
    """What every layer knows after the fit, input side first."""
    states = parameters.states.along(rows.u_bar, layout.lags, layout.lengths)
    problems = layer_problems(parameters.layers, states, rows, layout)
    known = [compute_posterior(layer, x_hat, targets.mean, layout.jitter) for layer, x_hat, targets in problems]
    hidden = len(states.mu)
    return (*known[:hidden], join_output_groups(known[hidden:], _groups(rows, layout)))


def layer_problems(
    layers: Sequence[Layer], states: FreeStates, rows: Rows, layout: Layout
) -> list[tuple[Layer, Gaussians, Targets]]:
    """Each layer as a regression of its targets on its regressors, both of them Gaussian.

    The output layer comes last, once for every group of outputs.
    """
    mu, lam = states.mu, states.lam
    means = regressors(mu, rows.u_bar, layout.lags, layout.lengths)
    variances = regressors(lam, rows.u_bar[:, :0], layout.lags, layout.lengths)  # inputs are known
    hidden = [
        Targets(later_states(m, layout.lags, layout.lengths), jnp.sum(later_states(v, layout.lags, layout.lengths)))
        for m, v in zip(mu, lam, strict=True)
    ]
    below = [
        (layer, Gaussians(mean, variance), target)
        for layer, mean, variance, target in zip(layers[:-1], means[:-1], variances[:-1], hidden, strict=True)
    ]
    outputs = [
        (layers[-1], Gaussians(means[-1], variances[-1], measured), Targets(y, 0.0))
        for y, measured in _measured(rows, layout)
    ]
    return [*below, *outputs]


def _measured(rows: Rows, layout: Layout) -> list[tuple[AnyArray, AnyArray | None]]:
    # Each group of outputs, with the rows at which it was measured.
    if rows.measured is None:
        return [(rows.y, None)]
    return [(rows.y[:, np.array(columns)], rows.measured[:, g]) for g, columns in enumerate(_groups(rows, layout))]


def _groups(rows: Rows, layout: Layout) -> tuple[tuple[int, ...], ...]:
    return (tuple(range(rows.y.shape[1])),) if layout.groups is None else layout.groups
