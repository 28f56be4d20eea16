"""Laplace eigenfunctions: orthonormal on the box, smoothest first, and close to the RBF kernel inside of it."""

import itertools

import numpy as np
import pytest

from revarb.baselines.state_space.laplace_basis import LaplaceBasis, compute_features, list_numbers
from support import oracles


def test_functions_are_orthonormal_on_the_box_and_vanish_at_its_border():
    basis = LaplaceBasis.build(np.array([2.0, 0.7]), 12)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    points = np.array(list(itertools.product(2.0 * nodes, 0.7 * nodes)))
    areas = np.outer(2.0 * weights, 0.7 * weights).ravel()
    values = np.asarray(basis.evaluate(points))
    np.testing.assert_allclose(values.T @ (areas[:, None] * values), np.eye(12), atol=1e-10)
    border = np.array([[2.0, 0.3], [-2.0, 0.1], [0.4, 0.7], [1.0, -0.7]])
    np.testing.assert_allclose(basis.evaluate(border), 0.0, atol=1e-13)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_the_smoothest_products_are_taken(dimensions):
    every = list(itertools.product(range(1, 13), repeat=dimensions))
    half_width = np.array([1.0, 2.0, 0.8])[:dimensions]
    sums = sorted(np.sum((np.array(numbers) / half_width) ** 2) for numbers in every)
    taken = list_numbers(half_width, 12)
    assert len({tuple(numbers) for numbers in taken}) == 12
    np.testing.assert_allclose(np.sum((taken / half_width) ** 2, axis=1), sums[:12])


def test_the_kernel_is_close_to_rbf_inside(rng):
    """The error is that of the border and of the functions that are left out: both are small here."""
    lengths, basis = np.array([0.8, 1.1]), LaplaceBasis.build(np.array([4.0, 4.0]), 250)
    points = rng.uniform(-1.5, 1.5, size=(20, 2))
    values = np.asarray(basis.evaluate(points))
    ours = values @ np.diag(np.asarray(basis.spectral_density(lengths))) @ values.T
    np.testing.assert_allclose(ours, oracles.rbf(points, points, 1.0 / lengths**2, 1.0), atol=2e-3)


def test_outputs_in_front_of_the_hidden_states_have_no_influence(rng):
    basis = LaplaceBasis.build(np.array([3.0, 2.0]), 5)  # one hidden state and one input
    hidden, inputs = rng.normal(size=(2, 7, 1))
    alone = compute_features(basis, hidden, inputs)
    behind = compute_features(basis, np.hstack([rng.normal(size=(7, 2)), hidden]), inputs)
    np.testing.assert_allclose(alone, behind, rtol=1e-12, atol=1e-13)
