"""q(x) and q(τ): their terms of the bound, and the weights of Student-t noise."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, norm, t

from revarb.gp.collapsed import collapsed_bound
from revarb.gp.layer import Gaussians, Targets, inverse_softplus
from revarb.variational.bound import Layout, revarb_bound
from revarb.variational.noise import MIN_DEGREES, StudentNoise, expected_squares, make_noise, weight_terms
from revarb.variational.states import InitialPrior, entropy, kl_to_prior
from support import chains
from support.random_models import JITTER, L, random_parameters, random_rows, separated


def make_layer(zeta, sigma2=0.2):
    return chains.make_layer(zeta, np.full(zeta.shape[1], 1.3), 0.8, sigma2)


@pytest.mark.parametrize("uncertain", [False, True])
def test_a_weight_of_two_is_the_row_twice_but_for_the_normalisation(rng, uncertain):
    """All other weights are one; those of zero are in tests/gp/test_layer.py."""
    x, y = rng.normal(size=(5, 2)), rng.normal(size=(5, 1))
    layer, twice = make_layer(rng.normal(size=(4, 2))), np.array([0, 1, 2, 3, 3, 4])
    once, repeated = Gaussians(x, None, np.array([1.0, 1.0, 1.0, 2.0, 1.0])), Gaussians(x[twice], None)
    if uncertain:
        lam = rng.uniform(0.1, 0.5, size=(5, 2))
        once, repeated = once._replace(variance=lam), repeated._replace(variance=lam[twice])
    weighted = collapsed_bound(layer, once, Targets(y, 0.0), JITTER)
    expected = collapsed_bound(layer, repeated, Targets(y[twice], 0.0), JITTER)
    normalisation = 0.5 * np.log(2.0 * np.pi * 0.2)  # of the row that is there twice
    assert float(expected) == pytest.approx(float(weighted) - normalisation, rel=1e-10)


@pytest.mark.parametrize(("rate", "degrees"), [(0.7, 4.0), (12.0, 3.0), (2.5, 30.0)])
def test_the_terms_of_q_agree_with_quadrature(rate, degrees):
    noise = StudentNoise(np.array([[np.log(rate)]]), np.asarray(inverse_softplus(degrees - MIN_DEGREES)))
    q = gamma((degrees + 1.0) / 2.0, scale=1.0 / rate)
    p = gamma(degrees / 2.0, scale=2.0 / degrees)
    expected, _ = quad(
        lambda tau: q.pdf(tau) * (0.5 * np.log(tau) + p.logpdf(tau) - q.logpdf(tau)), 1e-9, q.ppf(1.0 - 1e-12),
        limit=200, epsabs=1e-10,
    )  # fmt: skip
    assert float(weight_terms(noise)[0, 0]) == pytest.approx(expected, rel=1e-6, abs=1e-7)
    assert float(noise.weights[0, 0]) == pytest.approx(q.mean(), rel=1e-12)


def test_the_optimal_weights_give_the_student_density(rng):
    """At known g the bound is exact: Eqs. 52 and 53 add up to log t(y − g)."""
    squares, sigma2, degrees = rng.uniform(0.0, 40.0, size=(6, 1)), 0.3, 5.0
    noise = make_noise(squares, degrees)
    gaussian = -0.5 * np.log(2.0 * np.pi * sigma2) - 0.5 * np.asarray(noise.weights) * squares
    expected = t(degrees, scale=np.sqrt(sigma2)).logpdf(np.sqrt(squares * sigma2))
    np.testing.assert_allclose(gaussian + np.asarray(weight_terms(noise)), expected, rtol=1e-10)
    np.testing.assert_allclose(expected_squares(noise), squares, rtol=1e-10, atol=1e-12)


def test_the_bound_is_below_the_exact_evidence_and_near_it():
    """Two samples of an exact GP with Student-t noise: log p(y) by quadrature over f."""
    x, y, degrees, sigma2 = np.array([[0.0], [0.4]]), np.array([[0.3], [4.0]]), 4.0, 0.05
    layer, raw_degrees = make_layer(x, sigma2=sigma2), np.asarray(inverse_softplus(degrees - MIN_DEGREES))
    kernel = 0.8 * np.exp(-0.5 * 1.3 * (x - x.T) ** 2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(160)
    root = np.linalg.cholesky(kernel + 1e-10 * np.eye(2))
    f = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1) @ root.T
    density = np.prod([t(degrees, scale=np.sqrt(sigma2)).pdf(y[i, 0] - f[..., i]) for i in range(2)], axis=0)
    exact = np.log(np.sum(weights[:, None] * weights * density) / (2.0 * np.pi))

    def bound(log_rate):
        noise = StudentNoise(log_rate[:, None], raw_degrees)
        gaussians = Gaussians(x, None, noise.weights[:, 0])
        return collapsed_bound(layer, gaussians, Targets(y, 0.0), 1e-10) + jnp.sum(weight_terms(noise))

    rate, step = jnp.log(0.5 * (degrees + np.array([1.0, 300.0]))), jax.jit(jax.grad(bound))
    assert float(bound(jnp.zeros(2))) < exact
    for _ in range(400):
        rate = rate + 0.1 * step(rate)
    assert exact - 0.2 < float(bound(rate)) < exact


def test_many_degrees_of_freedom_are_gaussian(rng):
    """ν → ∞ with q(τ) at its optimum, whatever the errors: all weights are 1, and the terms vanish."""
    lengths = (7,)
    parameters = random_parameters(rng, lengths, linear=2)
    rows, layout = separated(random_rows(rng, lengths), Layout(L, lengths, JITTER))
    gaussian = float(revarb_bound(parameters, rows, layout))
    noise = make_noise(np.ones((5, 2)), 1e7)
    student = revarb_bound(replace(parameters, noise=noise), rows, layout)
    assert float(student) == pytest.approx(gaussian, rel=1e-6)


def test_a_missing_output_has_no_weight_and_no_terms(rng):
    lengths = (7,)
    parameters = random_parameters(rng, lengths, student=2)
    rows, layout = separated(random_rows(rng, lengths), Layout(L, lengths, JITTER))
    rows.measured[2, 1] = False
    before = float(revarb_bound(parameters, rows, layout))
    rows.y[2, 1] = 17.0
    parameters.noise.log_rate[2, 1] = 3.0
    assert float(revarb_bound(parameters, rows, layout)) == pytest.approx(before, rel=1e-12)


def test_entropy_is_the_sum_of_scipys(rng):
    lam = rng.uniform(0.01, 3.0, size=(5, 2))
    np.testing.assert_allclose(entropy(lam), np.sum(norm(scale=np.sqrt(lam)).entropy()), rtol=1e-12)


def test_kl_to_prior_agrees_with_an_integral():
    prior = InitialPrior(np.array([[0.3]]), np.array([[inverse_softplus(1.7)]]))
    grid = np.linspace(-12, 12, 200_001)
    q, p = norm(-0.5, np.sqrt(0.4)), norm(0.3, np.sqrt(1.7))
    expected = np.trapezoid(q.pdf(grid) * (q.logpdf(grid) - p.logpdf(grid)), grid)
    np.testing.assert_allclose(kl_to_prior(np.array([[[-0.5]]]), np.array([[[0.4]]]), prior), expected, rtol=1e-6)
