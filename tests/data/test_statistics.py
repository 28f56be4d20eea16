"""Statistics that neither overflow nor underflow; the distribution of a measurement: normal, or Student-t."""

import numpy as np
import pytest
from scipy import stats

from revarb.data.scaling import half_width, log_density, safe_rms, safe_std, share_below

STD = np.array([0.5, 1.0, 3.0])
ERROR = np.array([0.2, -2.5, 14.0])


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


@pytest.mark.parametrize("degrees", [None, 2.5, 4.0, 40.0])
def test_density_share_and_width_agree_with_scipy(degrees):
    """A Student-t has the standard deviation it is given; its middle is narrower, and its tails are wider."""
    law = stats.norm() if degrees is None else stats.t(degrees, scale=np.sqrt((degrees - 2.0) / degrees))
    assert law.std() == pytest.approx(1.0)
    np.testing.assert_allclose(log_density(ERROR, STD, degrees), law.logpdf(ERROR / STD) - np.log(STD), rtol=1e-12)
    np.testing.assert_allclose(share_below(ERROR, degrees), law.cdf(ERROR), rtol=1e-10)
    assert half_width(0.95, degrees) == pytest.approx(law.ppf(0.975), rel=1e-12)
    if degrees is not None:
        assert half_width(0.5, degrees) < half_width(0.5) and half_width(0.999, degrees) > half_width(0.999)
