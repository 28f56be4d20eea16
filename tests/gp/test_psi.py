import GPy
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from revarb.gp import psi
from support import oracles


@pytest.fixture
def case(rng):
    """Regressors, inducing inputs and a kernel of moderate size: mu, lam, zeta, w, variance."""

    def make(R, M, D):
        mu, lam, zeta = rng.normal(size=(R, D)), rng.uniform(0.01, 0.8, size=(R, D)), rng.normal(size=(M, D))
        return mu, lam, zeta, rng.uniform(0.2, 2.0, size=D), np.array(1.7)

    return make


@pytest.mark.parametrize(("M", "D"), [(3, 1), *((M, 2) for M in (1, 2, 7, 10))])
def test_psi1_and_psi2_agree_with_quadrature(case, M, D):
    values = case(4, M, D)
    np.testing.assert_allclose(psi.psi1(*values), oracles.psi1(*values), rtol=0, atol=1e-8)
    np.testing.assert_allclose(psi.psi2(*values), oracles.psi2(*values), rtol=0, atol=1e-8)


@pytest.mark.parametrize("D", [1, 6, 20])
def test_psi1_and_psi2_agree_with_gpy(case, D):
    mu, lam, zeta, w, variance = values = case(30, 12, D)
    kernel = GPy.kern.RBF(D, variance=float(variance), lengthscale=1.0 / np.sqrt(w), ARD=True)
    q = GPy.core.parameterization.variational.NormalPosterior(mu, lam)
    np.testing.assert_allclose(psi.psi1(*values), kernel.psi1(zeta, q), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(psi.psi2(*values), kernel.psi2(zeta, q), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("uncertain", [0, 1, 3])
def test_known_regressors_are_those_whose_variance_is_zero(case, uncertain):
    mu, lam, zeta, w, variance = case(7, 5, 4)
    lam[:, uncertain:] = 0.0

    def statistics(mu, lam, zeta, w):
        psi1, psi2 = (function(mu, lam, zeta, w, variance) for function in (psi.psi1, psi.psi2))
        return jnp.sum(psi1**2) + jnp.sum(jnp.log(psi2))

    gradient = jax.jit(jax.value_and_grad(statistics, argnums=(0, 1, 2, 3)))
    got, got_slopes = gradient(mu, lam[:, :uncertain], zeta, w)
    expected, slopes = gradient(mu, lam, zeta, w)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    slopes = (slopes[0], slopes[1][:, :uncertain], *slopes[2:])
    for a, b in zip(got_slopes, slopes, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("rows_per_block", [2, 4, 100])
@pytest.mark.parametrize("values_per_block", [5, 12, 10_000])
def test_blocks_and_the_handwritten_derivative_change_nothing(rng, monkeypatch, rows_per_block, values_per_block):
    """Blocks that divide the rows and points, and blocks that must be padded."""
    monkeypatch.setitem(psi.BLOCK_SIZES, "cpu", psi.BlockSize(rows_per_block, values_per_block))
    a, c, b = rng.normal(size=(9, 5)), rng.normal(size=9), rng.normal(size=(7, 5))
    direction = rng.normal(size=7)

    def plain(a, c, b):
        return direction @ jnp.sum(jnp.exp(a @ b.T + c[:, None]), axis=0)

    def ours(a, c, b):
        return direction @ psi.sum_of_exponentials(a, c, b)

    np.testing.assert_allclose(ours(a, c, b), plain(a, c, b), rtol=1e-12)
    for got, expected in zip(*(jax.grad(f, argnums=(0, 1, 2))(a, c, b) for f in (ours, plain)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12)


def test_no_gather_and_no_scatter_in_psi2_and_its_derivative(case):
    mu, lam, zeta, w, variance = case(4, 6, 2)
    gradient = jax.grad(lambda *values: jnp.sum(psi.psi2(*values) ** 2), argnums=(0, 1, 2, 3, 4))
    text = jax.jit(gradient).lower(mu, lam, zeta, w, np.asarray(variance)).as_text()
    assert "gather" not in text and "scatter" not in text


def full_statistics(mu, cov, zeta, w, variance):
    return psi.psi2_full(mu, cov, zeta, w, variance, psi.pair_exponents(zeta, w))


def test_full_covariance_statistics_agree_with_quadrature(case):
    mu, _, zeta, w, variance = case(1, 4, 2)
    cov = np.array([[0.5, -0.35], [-0.35, 0.4]])
    psi1, _ = psi.psi1_full(mu[0], cov, zeta, w, variance)
    np.testing.assert_allclose(psi1, oracles.psi1(mu, [cov], zeta, w, variance)[0], atol=1e-8)
    got = full_statistics(mu[0], cov, zeta, w, variance)
    np.testing.assert_allclose(got, oracles.psi2(mu, [cov], zeta, w, variance), atol=1e-8)


def test_an_irrelevant_regressor_changes_nothing(case):
    # Optimised lengthscales may tend to infinity: w = 0 must be equivalent to leaving the column out.
    mu, lam, zeta, w, variance = case(1, 5, 3)
    w = w.copy()
    w[1] = 0.0
    cov, keep = np.diag(lam[0]), [0, 2]
    got, _ = psi.psi1_full(mu[0], cov, zeta, w, variance)
    expected, _ = psi.psi1_full(mu[0, keep], cov[np.ix_(keep, keep)], zeta[:, keep], w[keep], variance)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
