"""The REVARB lower bound of log p(y) as a sum over layers (docs/theory/derivation.md, Eqs. 30, 42 and 54)."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from revarb.data.windows import initial_states, later_states, regressors
from revarb.gp.collapsed import bound_of_factors, bound_of_sums, collapsed_bound, factorise_known, sum_rows
from revarb.gp.layer import Gaussians, Layer, Targets, select_outputs, subtract_linear
from revarb.gp.posterior import (
    Posterior,
    PosteriorMean,
    compute_posterior,
    compute_posterior_mean,
    join_mean_groups,
    join_output_groups,
    mean_of_factors,
)
from revarb.runtime.numerics import AnyArray
from revarb.variational.noise import StudentNoise, weight_terms
from revarb.variational.parameters import Parameters
from revarb.variational.states import FreeStates, entropy, kl_to_prior


class Rows(NamedTuple):
    """Inputs and outputs of the training rows, z-scored.

    Missing outputs are zero. `measured` marks the measured rows of each group of outputs (`Layout.groups`); None if no
    output is missing. `inside` marks the rows of the records where others were appended to their blocks, whose states
    and outputs have no weight; None if none were. `known` marks the rows whose states count where the fit keeps them at
    the outputs: those without a filled gap; None if all do.
    """

    u_bar: Float[AnyArray, "R Du"]
    y: Float[AnyArray, "R Dy"]
    measured: Bool[AnyArray, "R G"] | None = None
    inside: Bool[AnyArray, " R"] | None = None
    known: Bool[AnyArray, " R"] | None = None


class Layout(NamedTuple):
    """Constants of a compiled bound: the state lag, the number of states of each record, and the jitter.

    `groups` has the columns of outputs that were measured at the same rows; None if no output is missing. Student-t
    outputs have a group each, because each has its own weights. Where the fit keeps the states at the outputs they are
    `certain`: regressors have no variance, that of the targets is a floor of the noise, and the output layer, which has
    nothing left to learn, is not in the bound.
    """

    lags: int
    lengths: tuple[int, ...]
    jitter: float
    groups: tuple[tuple[int, ...], ...] | None = None
    certain: bool = False


def revarb_bound(parameters: Parameters, rows: Rows, layout: Layout) -> Float[AnyArray, ""]:
    """Σ layers + Σ entropies of the later states − Σ KL of the initial states (Eq. 30), and terms of q(τ) (Eq. 54)."""
    bound = jnp.zeros(())
    states = parameters.states.evaluate(rows.u_bar, layout.lags, layout.lengths)
    learnt = len(states.mu) if layout.certain else None
    for layer, x_hat, targets in build_layer_problems(parameters, states, rows, layout)[:learnt]:
        bound += collapsed_bound(layer, x_hat, targets, layout.jitter)
    return _add_other_terms(bound, parameters, states, rows, layout)


def _add_other_terms(
    bound: AnyArray, parameters: Parameters, states: FreeStates, rows: Rows, layout: Layout
) -> Float[AnyArray, ""]:
    # Those of q(x) and of q(τ).
    if parameters.noise is not None:
        bound += jnp.sum(_list_measured(rows) * weight_terms(parameters.noise))
    for mu, lam, prior in zip(states.mu, states.lam, parameters.priors, strict=True):
        bound += entropy(later_states(lam, layout.lags, layout.lengths), _weigh_states(rows))
        bound -= kl_to_prior(
            initial_states(mu, layout.lags, layout.lengths), initial_states(lam, layout.lags, layout.lengths), prior
        )
    return bound


class BoundAndMeans(NamedTuple):
    """The bound, the latent states, and the posterior mean of every layer, input side first."""

    bound: Float[AnyArray, ""]
    states: FreeStates
    means: tuple[PosteriorMean, ...]


def bound_and_means(parameters: Parameters, rows: Rows, layout: Layout) -> BoundAndMeans:
    """The bound together with the posterior means at the same parameters; they share the sums over rows."""
    bound, means = jnp.zeros(()), []
    states = parameters.states.evaluate(rows.u_bar, layout.lags, layout.lengths)
    hidden = len(states.mu)
    for layer, x_hat, targets in build_layer_problems(parameters, states, rows, layout):
        residual = subtract_linear(layer.linear, x_hat, targets)
        if layout.certain:
            factors = factorise_known(layer, x_hat, residual.mean, layout.jitter)
            means.append(mean_of_factors(layer, factors))
            bound += bound_of_factors(layer, x_hat, residual, factors) if len(means) <= hidden else 0.0
        else:
            sums = sum_rows(layer, x_hat, residual.mean)
            means.append(compute_posterior_mean(layer, sums, layout.jitter))
            bound += bound_of_sums(layer, x_hat, residual, sums, layout.jitter)
    output = join_mean_groups(means[hidden:], _list_groups(rows, layout))
    bound = _add_other_terms(bound, parameters, states, rows, layout)
    return BoundAndMeans(bound, states, (*means[:hidden], output))


def compute_posteriors(parameters: Parameters, rows: Rows, layout: Layout) -> tuple[Posterior, ...]:
    """Compute the posterior of every layer, input side first."""
    states = parameters.states.evaluate(rows.u_bar, layout.lags, layout.lengths)
    problems = build_layer_problems(parameters, states, rows, layout)
    posteriors = [compute_posterior(layer, x_hat, targets.mean, layout.jitter) for layer, x_hat, targets in problems]
    hidden = len(states.mu)
    return (*posteriors[:hidden], join_output_groups(posteriors[hidden:], _list_groups(rows, layout)))


def build_layer_problems(
    parameters: Parameters, states: FreeStates, rows: Rows, layout: Layout
) -> list[tuple[Layer, Gaussians, Targets]]:
    """Build the regression problem of each layer: its parameters, Gaussian regressors and Gaussian targets.

    The output layer comes last, once for every group of outputs (Eq. 42). Appended rows have weight zero in all layers.
    """
    layers, mu, lam = parameters.layers, states.mu, states.lam
    means = regressors(mu, rows.u_bar, layout.lags, layout.lengths)
    variances: Sequence[AnyArray | None] = [None] * len(means)
    if not layout.certain:
        variances = regressors(lam, rows.u_bar[:, :0], layout.lags, layout.lengths)  # inputs have none
    inside = _weigh_states(rows)
    targets = [
        Targets(later_states(m, layout.lags, layout.lengths), _sum_states(v, inside, layout))
        for m, v in zip(mu, lam, strict=True)
    ]
    hidden = [
        (layer, Gaussians(mean, variance, inside), target)
        for layer, mean, variance, target in zip(layers[:-1], means[:-1], variances[:-1], targets, strict=True)
    ]
    outputs = [
        (layer, Gaussians(means[-1], variances[-1], weights), Targets(y, 0.0))
        for layer, y, weights in _split_outputs(layers[-1], parameters.noise, rows, layout)
    ]
    return [*hidden, *outputs]


def _weigh_states(rows: Rows) -> Float[AnyArray, " R"] | None:
    # Of every row in the hidden layers: 0 where it was appended, or touches a gap that was only filled.
    marks = [jnp.asarray(each, dtype=jnp.float64) for each in (rows.inside, rows.known) if each is not None]
    return functools.reduce(jnp.multiply, marks) if marks else None


def _sum_states(values: AnyArray, weights: AnyArray | None, layout: Layout) -> Float[AnyArray, ""]:
    later = later_states(values, layout.lags, layout.lengths)
    return jnp.sum(later) if weights is None else jnp.sum(weights[:, None] * later)


def _split_outputs(
    layer: Layer, noise: StudentNoise | None, rows: Rows, layout: Layout
) -> list[tuple[Layer, AnyArray, AnyArray | None]]:
    # Each group of outputs: its part of the output layer, its values, and the weights of the rows.
    if rows.measured is None and noise is None:
        return [(layer, rows.y, None)]
    groups = [np.array(columns) for columns in _list_groups(rows, layout)]
    weights = jnp.asarray(_list_measured(rows) if noise is None else _list_measured(rows) * noise.weights)
    return [(select_outputs(layer, columns), rows.y[:, columns], weights[:, g]) for g, columns in enumerate(groups)]


def _list_measured(rows: Rows) -> Float[AnyArray, "R G"] | float:
    # 1 where a group of outputs was measured, 0 where it is missing.
    return 1.0 if rows.measured is None else jnp.asarray(rows.measured, dtype=jnp.float64)


def _list_groups(rows: Rows, layout: Layout) -> tuple[tuple[int, ...], ...]:
    return (tuple(range(rows.y.shape[1])),) if layout.groups is None else layout.groups
