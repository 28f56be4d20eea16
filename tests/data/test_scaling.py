"""Z-scores of records, from their measured values; statistics that neither overflow nor underflow; distributions."""

import numpy as np
import pytest
from scipy import stats

from revarb.data.scaling import Standardiser, half_width, log_density, safe_rms, safe_std, share_below
from revarb.data.series import Series
from support import small


def test_only_measured_values_make_the_scaling(rng):
    values = rng.normal(-5, 0.1, size=(20, 2))
    whole = Series(np.arange(20) % 3, values)
    gaps = small.with_gaps(whole, (slice(3, 9), 0), (0, 1))
    scaling = Standardiser.from_records([gaps])
    seen = np.delete(values[:, 0], range(3, 9))
    np.testing.assert_allclose((scaling.y_mean[0], scaling.y_std[0]), (seen.mean(), seen.std()))
    z = scaling.outputs(gaps.y)
    np.testing.assert_array_equal(np.isnan(z), np.isnan(gaps.y))
    np.testing.assert_allclose((np.nanmean(z, axis=0), np.nanstd(z, axis=0)), ([0, 0], [1, 1]), atol=1e-12)
    np.testing.assert_allclose(scaling.raw_outputs(z), gaps.y)
    several = Standardiser.from_records([small.with_gaps(whole, (slice(None), 1)), whole])  # missing in one of them
    np.testing.assert_allclose(several.y_mean, values.mean(0))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_no_scale_is_too_small_or_too_large(scale, rng):
    u = rng.normal(size=50)
    scaling = Standardiser.from_records([Series(scale * u, u)])
    np.testing.assert_allclose(scaling.inputs(scale * u[:, None]), ((u - u.mean()) / u.std())[:, None], rtol=1e-9)
    Standardiser.from_records([Series(1e6 + 1e-3 * u, u)])  # a small signal on a large offset is no constant


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
