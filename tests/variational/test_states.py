import numpy as np
from scipy.stats import norm

from revarb.gp.layer import inverse_softplus
from revarb.variational.states import InitialPrior, entropy, kl_to_prior


def test_entropy_is_the_sum_of_scipys(rng):
    lam = rng.uniform(0.01, 3.0, size=(5, 2))
    np.testing.assert_allclose(entropy(lam), np.sum(norm(scale=np.sqrt(lam)).entropy()), rtol=1e-12)


def test_kl_to_prior_agrees_with_an_integral():
    prior = InitialPrior(np.array([[0.3]]), np.array([[inverse_softplus(1.7)]]))
    grid = np.linspace(-12, 12, 200_001)
    q, p = norm(-0.5, np.sqrt(0.4)), norm(0.3, np.sqrt(1.7))
    expected = np.trapezoid(q.pdf(grid) * (q.logpdf(grid) - p.logpdf(grid)), grid)
    np.testing.assert_allclose(kl_to_prior(np.array([[[-0.5]]]), np.array([[[0.4]]]), prior), expected, rtol=1e-6)
