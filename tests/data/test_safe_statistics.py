"""Statistics that neither overflow nor underflow."""

import numpy as np
import pytest

from revarb.data.safe_statistics import safe_rms, safe_std


@pytest.mark.parametrize("unit", [1e-300, 1.0, 1e300])
def test_results_scale_with_the_unit(unit):
    values = np.random.default_rng(0).normal(size=(50, 2))
    np.testing.assert_allclose(safe_std(unit * values), unit * values.std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(safe_rms(unit * values[:, 0]), unit * np.sqrt(np.mean(values[:, 0] ** 2)), rtol=1e-12)


def test_special_values():
    assert safe_std(np.zeros((3, 1)))[0] == 0.0
    assert safe_std(np.array([[1.0], [np.nan], [3.0]]))[0] == 1.0
    assert safe_rms(np.zeros(3)) == 0.0
    assert safe_rms(np.array([1.0, np.inf])) == np.inf
