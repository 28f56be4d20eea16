"""Fits that start at the optimum of another fit."""

from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest

from revarb.config.recipe import FIXED_FREE, Recipe, Stage
from revarb.runtime.numerics import with_numerics
from revarb.training import warm_start
from revarb.training.problem import initialise, prepare
from revarb.training.stretches import mask_fold
from revarb.training.warm_start import start_at
from revarb.variational.bound import compute_means
from support import small

SPEC = small.spec(inducing=8, calibrate=True, recipe=Recipe(stages=(Stage(FIXED_FREE, 20),)))
RECORD = small.record(samples=140)


@pytest.fixture(scope="module")
def fitted():
    return replace(SPEC, calibrate=False).fit(RECORD)


@with_numerics
def start_without(fold, fitted, record=RECORD):
    task = prepare(SPEC, [RECORD])
    masked = mask_fold([record], task.stretches, fold)
    problem = initialise(task._replace(records=tuple(masked)), 0)
    held_out = np.isnan(masked[0].y[:, 0])[task.preprocessor.order.first_row - SPEC.lags :]
    return problem, start_at(problem, fitted), held_out


def test_everything_but_the_held_out_states_comes_from_the_fit(fitted):
    problem, warm, held_out = start_without(1, fitted)
    found = fitted.trained.parameters
    assert 0 < held_out.sum() < len(held_out)
    for layer, trained in zip(warm.start.layers, found.layers, strict=True):
        np.testing.assert_array_equal(layer.zeta, trained.zeta)
        np.testing.assert_array_equal(layer.raw_w, trained.raw_w)
    for number, mu in enumerate(warm.start.states.mu):
        np.testing.assert_array_equal(mu[~held_out], found.states.mu[number][~held_out])
        assert not np.isclose(mu[held_out], found.states.mu[number][held_out], atol=1e-12).any()
        np.testing.assert_array_equal(
            warm.start.states.raw_lam[number][held_out], problem.start.states.raw_lam[number][held_out]
        )


def test_the_states_of_the_fit_in_the_gap_tell_nothing(fitted):
    """Whatever the fit has found there, and whatever its functions are: the start is the same."""
    _, warm, held_out = start_without(1, fitted)
    other = jax.tree.map(lambda mu: np.where(held_out[:, None], 1.7, mu), fitted.trained.parameters.states.mu)
    moved = eqx.tree_at(lambda own: own.states.mu, fitted.trained.parameters, other)
    chain = eqx.tree_at(lambda own: own.hidden[0].beta, fitted.trained.chain, fitted.trained.chain.hidden[0].beta + 1.0)
    trained = fitted.trained._replace(parameters=moved, chain=chain)
    _, again, _ = start_without(1, replace(fitted, trained=trained))
    for mu, same in zip(warm.start.states.mu, again.start.states.mu, strict=True):
        np.testing.assert_array_equal(mu, same)


@with_numerics
def test_held_out_states_are_simulated_from_those_before_them(fitted):
    """The first one by the layer itself: its mean, from the other rows, at the window before the stretch."""
    problem, warm, held_out = start_without(1, fitted)
    first = int(np.flatnonzero(held_out)[0])
    mu = np.asarray(warm.start.states.mu[0])
    window = np.concatenate([mu[first - SPEC.lags : first][::-1].ravel(), problem.rows.u_bar[first - SPEC.lags]])
    layer = compute_means(fitted.trained.parameters, problem.rows, held_out, problem.layout)[0]
    np.testing.assert_allclose(mu[first], layer.mean(window[None])[0], rtol=1e-9)


def test_without_gaps_the_start_is_the_optimum(fitted):
    problem = with_numerics(initialise)(prepare(SPEC, [RECORD]), 0)
    warm = with_numerics(start_at)(problem, fitted)
    for mu, trained in zip(warm.start.states.mu, fitted.trained.parameters.states.mu, strict=True):
        np.testing.assert_array_equal(mu, trained)


def test_a_run_that_diverges_leaves_the_start_values(fitted, monkeypatch):
    monkeypatch.setattr(warm_start, "FARTHEST", 1e-3)
    problem, warm, held_out = start_without(1, fitted)
    for mu, cold in zip(warm.start.states.mu, problem.start.states.mu, strict=True):
        np.testing.assert_array_equal(mu[held_out], cold[held_out])
