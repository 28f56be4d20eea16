"""The distribution of a measurement: normal, and Student-t with the same standard deviation."""

import numpy as np
import pytest
from scipy import stats

from revarb.data.distribution import half_width, log_density, share_below

STD = np.array([0.5, 1.0, 3.0])
ERROR = np.array([0.2, -2.5, 14.0])


@pytest.mark.parametrize("degrees", [None, 2.5, 4.0, 40.0])
def test_density_share_and_width_agree_with_scipy(degrees):
    scale = 1.0 if degrees is None else np.sqrt((degrees - 2.0) / degrees)
    law = stats.norm() if degrees is None else stats.t(degrees, scale=scale)
    np.testing.assert_allclose(log_density(ERROR, STD, degrees), law.logpdf(ERROR / STD) - np.log(STD), rtol=1e-12)
    np.testing.assert_allclose(share_below(ERROR, degrees), law.cdf(ERROR), rtol=1e-10)
    assert half_width(0.95, degrees) == pytest.approx(law.ppf(0.975), rel=1e-12)


@pytest.mark.parametrize("degrees", [2.5, 4.0, 40.0])
def test_a_student_has_the_standard_deviation_it_says(degrees):
    law = stats.t(degrees, scale=np.sqrt((degrees - 2.0) / degrees))
    assert law.std() == pytest.approx(1.0)
    assert half_width(0.5, degrees) < half_width(0.5)  # a narrow middle
    assert half_width(0.999, degrees) > half_width(0.999)  # and wide tails
