import numpy as np
import pytest

from revarb.gp.layer import inverse_softplus


def test_softplus_and_its_inverse():
    for value in (1e-8, 0.05, 1.0, 40.0):
        assert np.log1p(np.exp(inverse_softplus(value))) == pytest.approx(value, rel=1e-9)
