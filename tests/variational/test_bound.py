"""The whole bound: every derivative, several records, limits; parameters as one flat vector."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from revarb.gp.collapsed import collapsed_bound
from revarb.gp.layer import Layer, inverse_softplus
from revarb.models.recipe import GROUPS
from revarb.variational.bound import Layout, bound_and_means, build_layer_problems, revarb_bound
from revarb.variational.parameters import Parameters, flatten, get_form, select_entries, unflatten
from revarb.variational.states import FreeStates
from support import oracles
from support.random_models import JITTER, L, random_parameters, random_rows, separated

compiled = jax.jit(revarb_bound, static_argnums=2)


def test_gradient_agrees_with_finite_differences_on_every_leaf(rng):
    """H = 2, two records, two Student-t outputs, two latent dimensions, linear parts: every entry of every leaf."""
    lengths = (5, 6)
    parameters = random_parameters(rng, lengths, Dx=2, linear=2, student=2)
    rows, layout = separated(random_rows(rng, lengths), Layout(L, lengths, JITTER))

    form = get_form(parameters)

    @jax.jit
    def bound(vector):
        return revarb_bound(unflatten(vector, form), rows, layout)

    vector = np.array(flatten(parameters))
    gradient = np.asarray(jax.jit(jax.grad(bound))(vector))
    numeric = [oracles.finite_difference(bound, vector, index, step=1e-4) for index in range(len(vector))]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-9 * np.abs(gradient).max())
    for group in GROUPS:  # every leaf contributes to the bound
        assert np.abs(gradient[select_entries(parameters, (group,))]).min() > 0.0, group


def joined(first, second):
    """One model of two records whose inducing inputs are those of both."""
    layers = tuple(
        Layer(np.concatenate([a.zeta, b.zeta]), a.raw_w, a.raw_variance, a.raw_sigma2)
        for a, b in zip(first.layers, second.layers, strict=True)
    )
    states = jax.tree.map(lambda *pair: np.concatenate(pair), first.states, second.states)
    return Parameters(layers, states, first.priors)


def test_records_that_share_nothing_add_up(rng):
    """Two records so far apart that no kernel reaches across: the bound is the sum of the single ones."""
    first = random_parameters(rng, (6,))
    moved = random_parameters(rng, (5,), far=300.0)
    layers = tuple(
        Layer(b.zeta, a.raw_w, a.raw_variance, a.raw_sigma2) for a, b in zip(first.layers, moved.layers, strict=True)
    )
    second = Parameters(layers, moved.states, first.priors)
    rows1, rows2 = random_rows(rng, (6,)), random_rows(rng, (5,), far=300.0)
    both = jax.tree.map(lambda *pair: np.concatenate(pair), rows1, rows2)
    total = compiled(joined(first, second), both, Layout(L, (6, 5), JITTER))
    single1 = compiled(first, rows1, Layout(L, (6,), JITTER))
    single2 = compiled(second, rows2, Layout(L, (5,), JITTER))
    assert float(total) == pytest.approx(float(single1 + single2), rel=1e-9)


def test_certain_states_reduce_every_layer_to_its_exact_evidence(rng):
    """λ → 0 and ζ = x̂: each layer becomes exact GP regression of its states; only entropy and KL remain beside."""
    lengths, H = (7,), 2
    parameters = random_parameters(rng, lengths, H=H)
    rows, lam = random_rows(rng, lengths), 1e-7
    x = [np.asarray(mu) for mu in parameters.states.mu]
    past = [np.stack([np.concatenate([m[i - 1], m[i - 2]]) for i in range(L, 7)]) for m in x]
    current = [np.stack([np.concatenate([m[i], m[i - 1]]) for i in range(L, 7)]) for m in x]
    x_hat = [np.hstack([past[0], rows.u_bar]), np.hstack([past[1], current[0]]), current[1]]
    targets = [x[0][L:], x[1][L:], rows.y]
    layers = tuple(
        Layer(points, layer.raw_w, layer.raw_variance, np.asarray(inverse_softplus(0.2)))
        for points, layer in zip(x_hat, parameters.layers, strict=True)
    )
    states = FreeStates(parameters.states.mu, tuple(np.full(m.shape, inverse_softplus(lam)) for m in x))
    got = float(compiled(Parameters(layers, states, parameters.priors), rows, Layout(L, lengths, 1e-10)))
    evidence = sum(
        oracles.log_gaussian(y, oracles.rbf(p, p, np.asarray(layer.w), float(layer.variance)) + 0.2 * np.eye(len(p)))
        for p, y, layer in zip(x_hat, targets, layers, strict=True)
    )
    entropies = H * 5 * 0.5 * np.log(2 * np.pi * np.e * lam)
    kl = 0.0
    for m, prior in zip(x, parameters.priors, strict=True):
        mean, variance = np.asarray(prior.prior_mean), np.asarray(prior.variance)
        kl += 0.5 * np.sum((lam + (m[:L] - mean) ** 2) / variance - 1.0 + np.log(variance / lam))
    assert got == pytest.approx(evidence + entropies - kl, abs=1e-3)


def test_without_variances_of_the_regressors_the_bound_is_the_limit_of_its_hidden_layers(rng):
    """Layout.certain against λ = 1e-9 without the term of the output layer, whose parameters have no effect."""
    lengths = (7, 6)
    parameters, rows = random_parameters(rng, lengths, linear=2), random_rows(rng, lengths)
    raw = tuple(np.full(mu.shape, inverse_softplus(1e-9)) for mu in parameters.states.mu)
    parameters = replace(parameters, states=FreeStates(parameters.states.mu, raw))
    layout = Layout(L, lengths, JITTER)
    *_, output = build_layer_problems(parameters, parameters.states, rows, layout)
    hidden = float(compiled(parameters, rows, layout)) - float(collapsed_bound(*output, JITTER))
    certain = layout._replace(certain=True)
    assert float(compiled(parameters, rows, certain)) == pytest.approx(hidden, rel=1e-6)
    bound, _, means = jax.jit(bound_and_means, static_argnums=2)(parameters, rows, certain)
    assert float(bound) == pytest.approx(hidden, rel=1e-6) and means[-1].outputs == 2
    gradient = jax.jit(jax.grad(revarb_bound), static_argnums=2)(parameters, rows, certain)
    assert all(not np.any(leaf) for leaf in jax.tree.leaves(gradient.layers[-1]))
    assert all(np.any(leaf) for leaf in jax.tree.leaves(gradient.layers[0]))
    masked = rows._replace(known=np.arange(len(rows.y)) > 2)  # rows of weight zero
    gradient = jax.jit(jax.grad(revarb_bound), static_argnums=2)(parameters, masked, certain)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_flatten_and_back(rng):
    parameters = random_parameters(rng, (5, 4))
    again = unflatten(flatten(parameters), get_form(parameters))
    for ours, theirs in zip(jax.tree.leaves(again), jax.tree.leaves(parameters), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_every_entry_belongs_to_exactly_one_group(rng):
    parameters = random_parameters(rng, (5, 4), linear=1, student=1)
    memberships = np.sum([select_entries(parameters, (group,)) for group in GROUPS], axis=0)
    np.testing.assert_array_equal(memberships, 1)
