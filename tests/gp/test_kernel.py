import numpy as np

from revarb.gp.kernel import rbf
from support import oracles


def test_rbf_equals_a_double_loop(rng):
    a, b, w = rng.normal(size=(6, 3)), rng.normal(size=(4, 3)), rng.uniform(0.1, 3.0, size=3)
    np.testing.assert_allclose(rbf(a, b, w, np.array(2.5)), oracles.rbf(a, b, w, 2.5), rtol=1e-12)


def test_rbf_of_equal_points_is_the_variance(rng):
    a = 100.0 * rng.normal(size=(5, 2))
    np.testing.assert_allclose(np.diag(rbf(a, a, np.ones(2), np.array(0.7))), 0.7, rtol=1e-9)
